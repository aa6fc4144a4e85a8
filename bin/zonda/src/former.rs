//! Former spellings of commands, and how each is typed today.

/// Options of former commands that a value follows as a word of its own.
const OPTIONS_WITH_VALUE: [&str; 3] = ["--socket", "--limit", "--after"];
/// Options that list zones, and mean nothing where one zone is shown.
const OPTIONS_OF_LISTS: [&str; 2] = ["--limit", "--after"];

/// Returns what to type instead, if the arguments of the command line are a former spelling.
pub fn replacement(arguments: &[String]) -> Option<String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (former, command, rest) = match &words[..] {
        ["help", rest @ ..] if !rest.is_empty() => {
            let rest: Vec<String> =
                rest.iter().copied().chain(["--help"]).map(Into::into).collect();
            return replacement(&rest);
        }
        ["zones", rest @ ..] if names_zone(rest) => ("zones", "zone show", of_one_zone(rest)),
        ["zones", rest @ ..] => ("zones", "zone list", rest.to_vec()),
        ["upstreams", rest @ ..] => ("upstreams", "upstream list", rest.to_vec()),
        ["reload", rest @ ..] if names_zone(rest) => ("reload NAME", "zone reload", rest.to_vec()),
        ["zone", "check" | "lint" | "verify", rest @ ..] => {
            ("zone check", "file check", rest.to_vec())
        }
        ["zone", "print", rest @ ..] => ("zone print", "file print", rest.to_vec()),
        ["zone", "convert", rest @ ..] => ("zone convert", "file convert", rest.to_vec()),
        ["zone", "stats", rest @ ..] => ("zone stats", "file stats", rest.to_vec()),
        _ => return None,
    };
    let mut typed = format!("zonda {command}");
    for word in rest {
        typed.push(' ');
        typed += &quoted(word);
    }
    Some(format!("`zonda {former}` has another name now; type: {typed}"))
}

/// Divides arguments into options, each with its value if that is a word of its own, and names.
fn parts<'a>(mut words: &'a [&'a str]) -> Vec<&'a [&'a str]> {
    let mut parts = Vec::new();
    while let Some(first) = words.first() {
        let len = if OPTIONS_WITH_VALUE.contains(first) { 2 } else { 1 };
        let (part, rest) = words.split_at(len.min(words.len()));
        parts.push(part);
        words = rest;
    }
    parts
}

/// Whether the arguments of a former command name a zone.
fn names_zone(words: &[&str]) -> bool {
    parts(words).iter().any(|part| !part[0].starts_with('-'))
}

/// Returns the arguments without options that list zones.
fn of_one_zone<'a>(words: &'a [&'a str]) -> Vec<&'a str> {
    let is_of_lists =
        |word: &str| OPTIONS_OF_LISTS.contains(&word.split('=').next().unwrap_or_default());
    let kept = parts(words).into_iter().filter(|part| !is_of_lists(part[0]));
    kept.flatten().copied().collect()
}

/// Returns a word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/:=@%+,~".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) && !word.starts_with('~') {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the command to type instead of `line`, whose words are divided by bars.
    fn typed(line: &str) -> Option<String> {
        let arguments: Vec<String> = line.split('|').map(str::to_owned).collect();
        let text = replacement(&arguments)?;
        text.split_once("type: ").map(|(_, typed)| typed.to_owned())
    }

    #[test]
    fn a_zone_is_told_from_the_values_of_options() {
        for (former, today) in [
            ("zones|--limit|5|--after|a.test", "zonda zone list --limit 5 --after a.test"),
            ("zones|--socket|a.sock|example.com", "zonda zone show --socket a.sock example.com"),
            ("zones|--limit=5|example.com|--after|a|--json", "zonda zone show example.com --json"),
            ("reload|--json|example.com", "zonda zone reload --json example.com"),
            ("help|zone|check", "zonda file check --help"),
        ] {
            assert_eq!(typed(former).as_deref(), Some(today));
        }
        for line in ["reload", "reload|--socket|a.sock", "zone|list", "zone|show|check", "help"] {
            assert_eq!(typed(line), None, "{line}");
        }
    }

    #[test]
    fn words_that_a_shell_would_change_are_quoted() {
        for (word, quoted) in
            [("a b", "'a b'"), ("it's", r"'it'\''s'"), ("~x", "'~x'"), ("", "''"), ("$a", "'$a'")]
        {
            assert_eq!(
                typed(&format!("zone|print|{word}")),
                Some(format!("zonda file print {quoted}"))
            );
        }
    }
}
