//! Putting a manifest on a component: for languages in which no macro of an SDK leaves one inside.

use crate::manifest::{MANIFEST_SECTION, Manifest};

/// Bytes before the first section: magic, version, layer.
const HEADER_BYTES: usize = 8;
/// The kind of a custom section.
const CUSTOM: u8 = 0;

/// The component with this manifest at its top level, where it wins over one inside. One that was there before is replaced.
///
/// What is no component comes back with a section at its end; [`Component::read`](crate::Component::read) tells what it is.
///
/// # Errors
///
/// The manifest cannot be written as JSON.
pub fn pack(component: &[u8], manifest: &Manifest) -> Result<Vec<u8>, serde_json::Error> {
    let json = serde_json::to_vec(manifest)?;
    let mut packed = Vec::with_capacity(component.len() + json.len() + MANIFEST_SECTION.len() + HEADER_BYTES);
    let mut rest = component;
    if let Some((header, sections)) = component.split_at_checked(HEADER_BYTES) {
        packed.extend_from_slice(header);
        rest = sections;
        while let Some((section, after)) = split_section(rest) {
            if !is_manifest(section) {
                packed.extend_from_slice(section.whole);
            }
            rest = after;
        }
    }
    packed.extend_from_slice(rest);
    let mut content = leb128(MANIFEST_SECTION.len());
    content.extend_from_slice(MANIFEST_SECTION.as_bytes());
    content.extend_from_slice(&json);
    packed.push(CUSTOM);
    packed.extend(leb128(content.len()));
    packed.extend(content);
    Ok(packed)
}

/// A section at the top level; what is nested lies in its content and is not looked at.
#[derive(Clone, Copy)]
struct Section<'a> {
    whole: &'a [u8],
    kind: u8,
    content: &'a [u8],
}

fn split_section(bytes: &[u8]) -> Option<(Section<'_>, &[u8])> {
    let (&kind, sized) = bytes.split_first()?;
    let (length, content) = read_leb128(sized)?;
    let (content, after) = content.split_at_checked(length)?;
    Some((Section { whole: &bytes[..bytes.len() - after.len()], kind, content }, after))
}

fn is_manifest(section: Section<'_>) -> bool {
    let name = || {
        let (length, rest) = read_leb128(section.content)?;
        rest.get(..length)
    };
    section.kind == CUSTOM && name() == Some(MANIFEST_SECTION.as_bytes())
}

/// An unsigned number of at most 32 bits and what follows it.
fn read_leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    /// Bytes of seven bits each that 32 bits take at most.
    const MAX_BYTES: usize = 5;
    let mut number = 0_u64;
    for (at, byte) in bytes.iter().take(MAX_BYTES).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(number).ok()?, &bytes[at + 1..]));
        }
    }
    None
}

fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        // The mask leaves seven bits.
        #[expect(clippy::cast_possible_truncation, reason = "seven bits fit")]
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Component;

    const EMPTY_COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    fn manifest(name: &str, description: &str) -> Manifest {
        let json = serde_json::json!({
            "name": name, "version": "1", "description": description, "subscriptions": [{ "event": "stop" }],
        });
        Manifest::parse(json.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_packed_manifest_is_the_one_that_is_read_and_the_rest_stays_as_it_was() {
        // Lengths around each size of a length.
        for length in [0, 1, 60, 127, 128, 20_000] {
            let wanted = manifest("a", &"x".repeat(length));
            let packed = pack(EMPTY_COMPONENT, &wanted).unwrap();
            assert!(packed.starts_with(EMPTY_COMPONENT));
            assert_eq!(Component::read(&packed).unwrap().manifest, wanted, "{length}");
        }
    }

    #[test]
    fn packing_again_replaces_the_manifest_and_nothing_else() {
        let other = b"\0\x06\x05other".as_slice();
        let once = pack(&[EMPTY_COMPONENT, other].concat(), &manifest("a", "old")).unwrap();
        let twice = pack(&[once.as_slice(), other].concat(), &manifest("b", "new")).unwrap();
        assert_eq!(Component::read(&twice).unwrap().manifest, manifest("b", "new"));
        assert!(twice.starts_with(&[EMPTY_COMPONENT, other, other].concat()));
        assert!(!twice.windows(3).any(|bytes| bytes == b"old"));
    }

    #[test]
    fn damaged_bytes_are_no_reason_to_fall_over() {
        let whole = pack(EMPTY_COMPONENT, &manifest("a", "")).unwrap();
        for length in 0..whole.len() {
            let packed = pack(&whole[..length], &manifest("b", "")).unwrap();
            assert!(packed.len() > length);
        }
        let endless = [EMPTY_COMPONENT, &[CUSTOM, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]].concat();
        assert!(Component::read(&pack(&endless, &manifest("b", "")).unwrap()).is_err());
    }
}
