//! What two messages differ in, shown as `diff -u` would show two outputs of dig.

use crate::message::Message;

/// Returns the lines of both messages: ` ` in both, `-` only in the first, `+` only in the second.
///
/// Records are sorted, so their order does not show; empty when nothing differs.
pub fn difference(first: &Message, second: &Message) -> String {
    let (first, second) = (first.to_string(), second.to_string());
    if first == second {
        return String::new();
    }
    unified(&first.lines().collect::<Vec<_>>(), &second.lines().collect::<Vec<_>>())
}

/// Returns a longest common subsequence of lines, drawn with what is beside it.
fn unified(first: &[&str], second: &[&str]) -> String {
    // common[i][j]: lines in common of first[i..] and second[j..].
    let mut common = vec![vec![0_usize; second.len() + 1]; first.len() + 1];
    for i in (0..first.len()).rev() {
        for j in (0..second.len()).rev() {
            common[i][j] = if first[i] == second[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut text = String::new();
    while i < first.len() || j < second.len() {
        let both = i < first.len() && j < second.len() && first[i] == second[j];
        let drop_first =
            j == second.len() || i < first.len() && common[i + 1][j] >= common[i][j + 1];
        let (sign, line) = match (both, drop_first) {
            (true, _) => (' ', first[i]),
            (false, true) => ('-', first[i]),
            (false, false) => ('+', second[j]),
        };
        text.extend([sign]);
        text.push_str(line);
        text.push('\n');
        i += usize::from(sign != '+');
        j += usize::from(sign != '-');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_lines_that_differ_are_marked() {
        let text = unified(&["a", "b", "c"], &["a", "x", "c", "d"]);
        assert_eq!(text, " a\n-b\n+x\n c\n+d\n");
    }
}
