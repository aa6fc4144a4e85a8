//! Owners as keys, as DinoDNS has them: `www.example.org` is `org:example:www`.

/// The key of an owner. A colon in a label is `\058`, since colons stand between labels.
pub(super) fn of_owner(owner: &str) -> String {
    let mut labels = vec![String::new()];
    let mut characters = owner.chars();
    while let Some(character) = characters.next() {
        if character == '.' {
            labels.push(String::new());
            continue;
        }
        let Some(label) = labels.last_mut() else { break };
        match (character, (character == '\\').then(|| characters.next()).flatten()) {
            (':', _) | (_, Some(':')) => label.push_str("\\058"),
            (first, second) => label.extend([Some(first), second].into_iter().flatten()),
        }
    }
    if labels.last().is_some_and(String::is_empty) {
        labels.pop(); // the dot at the end
    }
    labels.reverse();
    labels.join(":")
}

/// The owner of a key.
pub(super) fn owner(key: &str) -> String {
    let mut labels: Vec<_> = key.split(':').collect();
    labels.reverse();
    match labels.join(".") {
        root if root.is_empty() => ".".to_owned(),
        owner => owner,
    }
}

/// Text as a pattern that matches it alone.
pub(super) fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if "*?[]^\\".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// A key as a pattern that matches it in capitals, too.
pub(super) fn in_any_case(key: &str) -> String {
    let character = |character: char| match character.is_ascii_alphabetic() {
        true => format!("[{}{}]", character.to_ascii_lowercase(), character.to_ascii_uppercase()),
        false => literal(character.encode_utf8(&mut [0; 4])),
    };
    key.chars().map(character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_labels_from_the_right_as_dinodns_has_them() {
        for (name, key) in [
            ("example.com", "com:example"),
            ("com", "com"),
            ("*.example.com", "com:example:*"),
            (r"a\.b.example.com", r"com:example:a\.b"),
            (r"a\058b.example.com", r"com:example:a\058b"),
        ] {
            assert_eq!(of_owner(name), key);
            assert_eq!(owner(key), name);
        }
        assert_eq!(of_owner("example.com."), "com:example");
        assert_eq!(of_owner("a:b.com"), r"com:a\058b");
        assert_eq!(of_owner(r"a\:b.com"), r"com:a\058b");
        assert_eq!((of_owner("."), owner("")), (String::new(), ".".to_owned()));
    }

    #[test]
    fn a_pattern_has_no_meaning_of_its_own() {
        assert_eq!(literal(r"com:example:*\058"), r"com:example:\*\\058");
        assert_eq!(in_any_case(r"a:B*"), r"[aA]:[bB]\*");
    }
}
