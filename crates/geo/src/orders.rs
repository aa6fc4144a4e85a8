//! Orders of sites by number, so that the value of a network is small: "order 17 = fra, lon, nyc".

use std::collections::HashMap;
use std::sync::Arc;

/// Lists of indices of sites without repetition, numbered from 0 in the order of their coming.
#[derive(Debug, Clone, Default)]
pub struct Orders {
    /// The lists by number.
    lists: Vec<Arc<[u16]>>,
    /// The numbers of the lists.
    numbers: HashMap<Arc<[u16]>, u32>,
}

impl Orders {
    /// Returns the number of an order, a new one if it has none yet.
    pub fn number(&mut self, order: &[u16]) -> u32 {
        if let Some(number) = self.numbers.get(order) {
            return *number;
        }
        let number = u32::try_from(self.lists.len()).expect("memory ends before 2³² lists");
        let order: Arc<[u16]> = order.into();
        self.lists.push(order.clone());
        self.numbers.insert(order, number);
        number
    }

    /// Returns the order of a number, or `None` if there is none yet.
    pub fn order(&self, number: u32) -> Option<&[u16]> {
        self.lists.get(number as usize).map(|order| &**order)
    }

    /// Returns the number of orders.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Tells whether there is no order yet.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_orders_have_one_number() {
        let mut orders = Orders::default();
        assert!(orders.is_empty());
        let lists: [&[u16]; 4] = [&[2, 0, 1], &[], &[2, 0, 1], &[2, 0]];
        assert_eq!(lists.map(|list| orders.number(list)), [0, 1, 0, 2]);
        assert_eq!(orders.order(0), Some(&[2u16, 0, 1][..]));
        assert_eq!((orders.order(3), orders.len()), (None, 3));
    }
}
