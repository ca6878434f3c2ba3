//! Signatures over the bytes of a component, in the format of minisign. Pure: no files, no clock.
//!
//! A signature is checked when a guest is added and by `audit` and `guests verify`, never on an event: there the signer that was
//! found then counts, because the digest in the lock file stands for the same bytes. Nothing is fetched and no key is believed
//! because it came with a guest: keys are the operator's, written in the configuration.

use std::fmt;

use minisign_verify::{PublicKey, Signature};
use thiserror::Error;

/// Largest signature that is read, in bytes: four short lines, one of which is a comment.
pub(crate) const MAX_SIGNATURE_BYTES: u64 = 4 * 1024;

/// A public key of minisign: the second line of a `.pub` file.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Key(String);

/// The name of a key in its signatures, 16 letters of hex as `minisign` shows it. It finds a key and proves nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct KeyId(String);

/// Whose signature a component has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Signer {
    /// Nobody's.
    None,
    /// One of a key that is not among the trusted ones, so that it says nothing.
    Unknown(KeyId),
    /// It was checked with this trusted key.
    Trusted(Key),
}

/// Why a signature is refused.
#[derive(Debug, Error)]
pub(crate) enum SignatureError {
    #[error("it is not a signature of minisign ({0})")]
    Format(String),
    #[error(
        "it is not a signature of these bytes by the trusted key {0}: the component, its signature or both are not what was signed"
    )]
    Wrong(KeyId),
}

impl Key {
    /// Reads a key.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        PublicKey::from_base64(text.trim()).ok()?;
        Some(Self(text.trim().to_owned()))
    }

    /// The key as it is written.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn id(&self) -> KeyId {
        KeyId::of_base64(&self.0)
    }
}

impl KeyId {
    /// The id in the first bytes of a key or a signature: two of the algorithm, eight of the id, least first.
    fn of_base64(text: &str) -> Self {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let value = |letter: u8| ALPHABET.iter().position(|known| *known == letter).unwrap_or_default();
        let mut bytes = Vec::new();
        for letters in text.as_bytes().chunks(4).take(4) {
            let bits = letters.iter().fold(0_usize, |bits, letter| bits << 6 | value(*letter));
            bytes.extend(bits.to_be_bytes().into_iter().skip(size_of::<usize>() - 3));
        }
        let id: Vec<_> = bytes.into_iter().skip(2).take(8).rev().collect();
        Self(omc_artifact::hex(&id).to_ascii_uppercase())
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Unknown(id) => write!(f, "by {id}, which is not a trusted key: not checked"),
            Self::Trusted(key) => write!(f, "by the trusted key {}", key.id()),
        }
    }
}

/// Finds out whose signature it is. One that names a trusted key and does not fit is an error, whatever else there is.
pub(crate) fn verify<'a>(
    bytes: &[u8],
    signature: Option<&str>,
    trusted: impl IntoIterator<Item = &'a Key>,
) -> Result<Signer, SignatureError> {
    let Some(text) = signature else { return Ok(Signer::None) };
    let signature = Signature::decode(text).map_err(|error| SignatureError::Format(error.to_string()))?;
    let id = KeyId::of_base64(text.lines().nth(1).unwrap_or_default());
    let named: Vec<_> = trusted.into_iter().filter(|key| key.id() == id).collect();
    let fits = |key: &&Key| {
        // Older versions of minisign sign the bytes themselves, newer ones their hash; both are as good.
        PublicKey::from_base64(key.as_str()).is_ok_and(|key| key.verify(bytes, &signature, true).is_ok())
    };
    match named.iter().copied().find(fits) {
        Some(key) => Ok(Signer::Trusted(key.clone())),
        None if named.is_empty() => Ok(Signer::Unknown(id)),
        None => Err(SignatureError::Wrong(id)),
    }
}

#[cfg(test)]
mod tests {
    use minisign::KeyPair;

    use super::*;

    fn sign(keys: &KeyPair, bytes: &[u8]) -> String {
        minisign::sign(None, &keys.sk, bytes, None, None).unwrap().into_string()
    }

    fn key(keys: &KeyPair) -> Key {
        Key::parse(&keys.pk.to_base64()).unwrap()
    }

    #[test]
    fn a_signature_counts_only_for_its_bytes_and_a_trusted_key() {
        let (alice, eve) =
            (KeyPair::generate_unencrypted_keypair().unwrap(), KeyPair::generate_unencrypted_keypair().unwrap());
        let trusted = [key(&alice)];
        let good = sign(&alice, b"component");
        assert_eq!(verify(b"component", Some(&good), &trusted).unwrap(), Signer::Trusted(key(&alice)));
        assert_eq!(verify(b"component", None, &trusted).unwrap(), Signer::None);
        assert_eq!(verify(b"component", Some(&good), &[]).unwrap(), Signer::Unknown(key(&alice).id()));
        let hers = sign(&eve, b"component");
        assert_eq!(verify(b"component", Some(&hers), &trusted).unwrap(), Signer::Unknown(key(&eve).id()));

        // Altered bytes, a signature of another file, and hers under the name of the trusted key.
        let wrong = |bytes: &[u8], signature: &str| {
            matches!(verify(bytes, Some(signature), &trusted), Err(SignatureError::Wrong(_)))
        };
        assert!(wrong(b"componenT", &good));
        assert!(wrong(b"component", &sign(&alice, b"another")));
        let mut lines: Vec<_> = hers.lines().map(str::to_owned).collect();
        let name = good.lines().nth(1).unwrap();
        // Sixteen letters hold the algorithm, the id and two bytes of the signature.
        lines[1] = format!("{}{}", &name[..16], &lines[1][16..]);
        assert!(wrong(b"component", &lines.join("\n")));
        // The trusted comment is signed as well.
        assert!(wrong(b"component", &good.replace("trusted comment: ", "trusted comment: not ")));
    }

    #[test]
    fn what_is_no_signature_is_refused_and_what_is_no_key_is_none() {
        for text in [
            "",
            "a",
            "untrusted comment: x\nRWQ\ntrusted comment: y\nabc",
            "\n\n\n\n",
            "\u{e9}\n\u{e9}\n\u{e9}\n\u{e9}",
        ] {
            assert!(matches!(verify(b"component", Some(text), &[]), Err(SignatureError::Format(_))), "{text:?}");
        }
        for text in ["", "RWQ", "../../etc/passwd", "untrusted comment: minisign public key"] {
            assert_eq!(Key::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_key_has_the_id_that_minisign_shows() {
        // The key and id of minisign's own documentation.
        let key = Key::parse("RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3").unwrap();
        assert_eq!(key.id().to_string(), "E7620F1842B4E81F");
    }
}
