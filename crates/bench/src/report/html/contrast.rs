//! The style's colours against each other, by WCAG 2.2: 4.5 for text, 3 for what is drawn.

use super::STYLE;

/// The value of a colour variable in the light or the dark scheme.
fn colour(name: &str, dark: bool) -> [f64; 3] {
    let (light, rest) = STYLE.split_once("@media (prefers-color-scheme: dark)").unwrap();
    let scheme = if dark { rest } else { light };
    let (_, value) = scheme.split_once(&format!("{name}: #")).unwrap_or_else(|| panic!("{name}"));
    [0, 2, 4].map(|at| f64::from(u8::from_str_radix(&value[at..at + 2], 16).unwrap()) / 255.0)
}

/// Relative luminance.
fn luminance(colour: [f64; 3]) -> f64 {
    let linear = |part: f64| {
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    };
    let [red, green, blue] = colour.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// The contrast of two colours; 1–21.
fn contrast(a: &str, b: &str, dark: bool) -> f64 {
    let (a, b) = (luminance(colour(a, dark)), luminance(colour(b, dark)));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn text_and_drawings_stand_out_from_paper_in_both_schemes() {
    let text =
        ["--ink", "--soft", "--s0", "--s1", "--s2", "--s3", "--s4", "--s5", "--s6", "--floor"];
    for dark in [false, true] {
        for name in text {
            let ratio = contrast(name, "--paper", dark);
            assert!(ratio >= 4.5, "{name}, dark {dark}: {ratio:.2}");
        }
        for (name, ground) in [("--ink", "--wash"), ("--soft", "--wash"), ("--s0", "--wash")] {
            let ratio = contrast(name, ground, dark);
            assert!(ratio >= 4.5, "{name} on {ground}, dark {dark}: {ratio:.2}");
        }
        let ratio = contrast("--other", "--paper", dark);
        assert!(ratio >= 3.0, "--other, dark {dark}: {ratio:.2}");
    }
}

/// What a colour becomes for those who lack one kind of cones, after Viénot, Brettel and Mollon
/// (1999): linear parts mixed by a matrix.
fn seen_without(colour: [f64; 3], matrix: [[f64; 3]; 3]) -> [f64; 3] {
    let linear = colour.map(|part: f64| part.powf(2.2));
    matrix.map(|row| {
        let sum: f64 = row.iter().zip(linear).map(|(weight, part)| weight * part).sum();
        sum.clamp(0.0, 1.0).powf(1.0 / 2.2)
    })
}

#[test]
fn the_first_four_lines_differ_for_the_colour_blind_too() {
    let kinds = [
        [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
        [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
    ];
    let names = ["--s0", "--s1", "--s2", "--s3"];
    for (dark, kind) in [false, true].into_iter().flat_map(|dark| kinds.map(|kind| (dark, kind))) {
        let seen = names.map(|name| seen_without(colour(name, dark), kind));
        for (index, a) in seen.iter().enumerate() {
            for (other, b) in seen.iter().enumerate().skip(index + 1) {
                let square: f64 = a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum();
                let distance = square.sqrt();
                assert!(
                    distance > 0.12,
                    "{} {}, dark {dark}: {distance:.2}",
                    names[index],
                    names[other]
                );
            }
        }
    }
}
