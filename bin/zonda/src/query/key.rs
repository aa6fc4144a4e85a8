//! The key that a query is signed with, from the command line.

use zonda_wire::Name;
use zonda_wire::rdata::base64_word;
use zonda_wire::tsig::{Algorithm, Key};

/// The form of a key, as help and errors show it.
pub const FORM: &str = "[ALGORITHM:]NAME:SECRET";

/// Reads a key: the algorithm, hmac-sha256 unless it is given, the name, and the secret in base 64.
/// What is wrong is told without the secret.
///
/// # Errors
/// What is wrong with it.
pub fn key_of(text: &str) -> Result<Key, String> {
    let words: Vec<&str> = text.split(':').collect();
    let (algorithm, name, secret) = match words[..] {
        [name, secret] => (Algorithm::HmacSha256, name, secret),
        [algorithm, name, secret] => {
            let wrong = || {
                let known = Algorithm::ALL.map(Algorithm::name).join(", ");
                format!("there is no algorithm {algorithm}; write one of {known}")
            };
            (algorithm.parse().map_err(|()| wrong())?, name, secret)
        }
        _ => return Err(format!("the key has the form {FORM}")),
    };
    let parsed: Name = name.parse().map_err(|error| format!("name of the key: {name}: {error}"))?;
    let mut octets = Vec::new();
    let is_read = base64_word(secret.as_bytes(), &mut octets).is_ok();
    if !is_read || octets.is_empty() {
        return Err(format!("the secret of the key {name} is not in base 64"));
    }
    Ok(Key::new(&parsed, algorithm, &octets))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_key_has_an_algorithm_unless_it_is_hmac_sha256_a_name_and_a_secret() {
        let read =
            |text| key_of(text).map(|key| format!("{} {}", key.name(), key.algorithm().name()));
        assert_eq!(read("Key.Example:c2VjcmV0").unwrap(), "key.example. hmac-sha256");
        assert_eq!(read("HMAC-SHA512:k:c2VjcmV0").unwrap(), "k. hmac-sha512");
        for wrong in ["", "k", "k:", "k:c2V#", "hmac-md5:k:c2VjcmV0", "a:b:c:d", "k..x:c2VjcmV0"] {
            let error = read(wrong).unwrap_err();
            assert!(!error.contains("c2V"), "{error}");
        }
    }
}
