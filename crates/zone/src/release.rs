//! Large buffers are freed in steps.
//!
//! While the system takes back the pages of a mapping, no other thread of the process can map or
//! unmap memory. For half a GiB that takes some 70 ms, for which each thread that needs a larger
//! buffer would wait. A pause behind each step lets threads that wait go on: the system wakes them
//! too late to take their turn before the next step otherwise.

use std::thread;
use std::time::Duration;

/// Octets freed in one step: well below a millisecond.
const STEP: usize = 4 << 20;
/// The pause behind each step.
const PAUSE: Duration = Duration::from_micros(100);

/// Frees a buffer, a large one from its end on in steps of a few MiB.
pub fn free_in_steps<T>(mut buffer: Vec<T>) {
    let step = STEP / size_of::<T>().max(1);
    while buffer.capacity() > step {
        let left = buffer.capacity() - step;
        buffer.truncate(left);
        buffer.shrink_to(left);
        if buffer.capacity() > left {
            return; // the allocator does not shrink buffers
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn every_element_of_a_large_buffer_is_dropped_once() {
        let counter = Rc::new(());
        let buffer = vec![Rc::clone(&counter); 2 * STEP / size_of::<Rc<()>>() + 1];
        free_in_steps(buffer);
        assert_eq!(Rc::strong_count(&counter), 1);
    }
}
