//! Tables and numbers for people.

use std::io::{self, Write};

/// Between two columns.
const GAP: &str = "  ";

/// Writes rows whose columns are as wide as their widest cell; columns of numbers are set to the
/// right. An empty row is an empty line.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut impl Write, rows: &[Vec<String>]) -> io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let width = |column| cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let is_number =
        |column| cells(column).skip(1).all(|cell| cell == "–" || starts_as_number(cell));
    let shape: Vec<(usize, bool)> = (0..columns).map(|it| (width(it), is_number(it))).collect();
    for row in rows {
        let mut line = String::new();
        for (cell, (width, is_number)) in row.iter().zip(&shape) {
            let padding = " ".repeat(width - cell.chars().count());
            let gap = if line.is_empty() { "" } else { GAP };
            match is_number {
                true => line.extend([gap, &padding, cell]),
                false => line.extend([gap, cell, &padding]),
            }
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Whether a cell is a number, perhaps with a unit.
fn starts_as_number(cell: &str) -> bool {
    cell.starts_with(|c: char| c.is_ascii_digit()) && !cell.contains([':', '/'])
}

/// Writes names and their values, a line each; a value of several lines goes on below itself.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_fields(out: &mut impl Write, fields: &[(&str, String)]) -> io::Result<()> {
    let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in fields {
        let mut lines = value.lines();
        let first = lines.next().unwrap_or("–");
        writeln!(out, "{name:<width$}{GAP}{first}")?;
        lines.try_for_each(|line| writeln!(out, "{:<width$}{GAP}{line}", ""))?;
    }
    Ok(())
}

/// A number of octets, with a unit that leaves three or four digits.
pub fn octets(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (count as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    let digits = usize::from(unit > 0 && value < 100.0);
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A time in its two largest units.
pub fn duration(secs: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let first = UNITS.iter().position(|(size, _)| secs >= *size).unwrap_or(UNITS.len() - 1);
    let mut left = secs;
    let mut parts = Vec::new();
    for (size, unit) in UNITS.iter().skip(first).take(2) {
        let count = left / size;
        left %= size;
        if count > 0 || parts.is_empty() {
            parts.push(format!("{count} {unit}"));
        }
    }
    parts.join(" ")
}

/// A count and a share of all.
pub fn share(count: u64, all: u64) -> String {
    let percent = if all == 0 { 0.0 } else { 100.0 * count as f64 / all as f64 };
    format!("{percent:.1} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_octets_have_units_that_people_read() {
        for (secs, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3_725, "1 h 2 min"),
            (86_400 * 40 + 3_600 * 5 + 59, "40 d 5 h"),
        ] {
            assert_eq!(duration(secs), text);
        }
        for (count, text) in
            [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (70 << 20, "70.0 MiB")]
        {
            assert_eq!(octets(count), text);
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_cells_and_numbers_are_set_to_the_right() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows =
            [row(["zone", "serial", "file"]), row(["a.", "7", "x"]), row(["long.", "–", "y"])];
        let mut out = Vec::new();
        write(&mut out, &rows).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "zone   serial  file\na.          7  x\nlong.       –  y\n");
    }
}
