//! The style's colours against each other, by WCAG 2.2: 4.5 for text, 3 for what is drawn.

use super::STYLE;

/// Returns the value of a colour variable in the light or the dark scheme.
fn colour(name: &str, dark: bool) -> [f64; 3] {
    let (light, rest) = STYLE.split_once("@media (prefers-color-scheme: dark)").unwrap();
    let scheme = if dark { rest } else { light };
    let (_, value) = scheme.split_once(&format!("{name}: #")).unwrap_or_else(|| panic!("{name}"));
    [0, 2, 4].map(|at| f64::from(u8::from_str_radix(&value[at..at + 2], 16).unwrap()) / 255.0)
}

/// Returns a part of a colour without the curve of sRGB.
fn linear(part: f64) -> f64 {
    if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
}

/// Computes the relative luminance of a colour.
fn luminance(colour: [f64; 3]) -> f64 {
    let [red, green, blue] = colour.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// Returns the contrast of two colours; 1–21.
fn contrast(a: &str, b: &str, dark: bool) -> f64 {
    let (a, b) = (luminance(colour(a, dark)), luminance(colour(b, dark)));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn text_and_drawings_stand_out_from_paper_in_both_schemes() {
    let text = ["--ink", "--soft", "--s0", "--floor"];
    let drawn = ["--s1", "--s2", "--s3", "--s4", "--s5", "--s6", "--other"];
    for dark in [false, true] {
        for name in text {
            let ratio = contrast(name, "--paper", dark);
            assert!(ratio >= 4.5, "{name}, dark {dark}: {ratio:.2}");
        }
        for (name, ground) in [("--ink", "--wash"), ("--soft", "--wash"), ("--s0", "--wash")] {
            let ratio = contrast(name, ground, dark);
            assert!(ratio >= 4.5, "{name} on {ground}, dark {dark}: {ratio:.2}");
        }
        for name in drawn {
            let ratio = contrast(name, "--paper", dark);
            assert!(ratio >= 3.0, "{name}, dark {dark}: {ratio:.2}");
        }
    }
}

/// Linear parts mixed by a matrix.
type Mixture = [[f64; 3]; 3];

/// What colours become without cones for long waves (protanopia), without those for middle waves
/// (deuteranopia), after Viénot, Brettel and Mollon (1999), and with all.
const SIGHTS: [(&str, Mixture); 3] = [
    ("protanopia", [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]]),
    ("deuteranopia", [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]),
    ("all cones", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
];

/// Colours of lines are further apart than this in CIELAB, where 2.3 is just noticed.
const DISTANCE_MIN: f64 = 18.0;

/// Returns a colour as it is seen.
fn seen(colour: [f64; 3], sight: Mixture) -> [f64; 3] {
    let linear = colour.map(|part: f64| part.powf(2.2));
    sight.map(|row| {
        let sum: f64 = row.iter().zip(linear).map(|(weight, part)| weight * part).sum();
        sum.clamp(0.0, 1.0).powf(1.0 / 2.2)
    })
}

/// Lightness and the two opponent axes of CIELAB, under D65.
fn lab(colour: [f64; 3]) -> [f64; 3] {
    let [red, green, blue] = colour.map(linear);
    let x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505;
    let y = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    let z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089;
    let [x, y, z] = [x, y, z].map(|part| match part > 0.008_856 {
        true => part.cbrt(),
        false => 7.787 * part + 16.0 / 116.0,
    });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

#[test]
fn every_two_lines_differ_for_the_colour_blind_too() {
    let names = ["--s0", "--s1", "--s2", "--s3", "--s4", "--s5", "--s6"];
    for (dark, (sight, mixture)) in
        [false, true].into_iter().flat_map(|dark| SIGHTS.map(|sight| (dark, sight)))
    {
        let seen = names.map(|name| lab(seen(colour(name, dark), mixture)));
        for (index, a) in seen.iter().enumerate() {
            for (other, b) in seen.iter().enumerate().skip(index + 1) {
                let square: f64 = a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum();
                let (distance, one, other) = (square.sqrt(), names[index], names[other]);
                let text = format!("{one} {other}, {sight}, dark {dark}: {distance:.1}");
                assert!(distance > DISTANCE_MIN, "{text}");
            }
        }
    }
}
