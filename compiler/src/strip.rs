//! Compiled code without its symbols: a twelfth of its size, which nobody reads.
//!
//! The engine writes an ELF file whose last sections are a table of symbols and their names. It only looks for sections by name
//! when it loads the file, and the symbols are for debuggers and profilers. The names that a guest itself has for its functions stay
//! in a section of the engine's, which refers to them; a guest that was linked without them has none.

use anyhow::{Context as _, Result, ensure};

/// The parts of an ELF-64 header and of a section's header that matter here: offset and length in bytes.
const SECTIONS_OFFSET: (usize, usize) = (40, 8);
const SECTION_COUNT: (usize, usize) = (60, 2);
const NAMES_INDEX: (usize, usize) = (62, 2);
const SECTION_KIND: (usize, usize) = (4, 4);
const SECTION_OFFSET: (usize, usize) = (24, 8);
const SECTION_SIZE: (usize, usize) = (32, 8);
const SECTION_HEADER_BYTES: usize = 64;
/// The length of the header of an ELF-64 file, in bytes.
const HEADER_BYTES: usize = 64;

/// Kinds of sections: a table of symbols, a table of names.
const SYMBOLS: u64 = 2;
const NAMES: u64 = 3;

/// Removes the symbols and their names from compiled code.
pub(crate) fn symbols(code: &[u8]) -> Result<Vec<u8>> {
    ensure!(code.starts_with(b"\x7fELF\x02\x01"), "compiled code is not a little-endian ELF-64 file");
    let count = number(code, SECTION_COUNT)?;
    let names = number(code, NAMES_INDEX)?;
    let first = usize::try_from(number(code, SECTIONS_OFFSET)?)?;
    let mut headers = Vec::new();
    let mut kept_names = None;
    for index in 0..count {
        let at = usize::try_from(index)?.checked_mul(SECTION_HEADER_BYTES).and_then(|at| at.checked_add(first));
        let header = at.and_then(|at| piece(code, at, SECTION_HEADER_BYTES));
        let header = header.context("a section's header lies beyond the end")?;
        let kind = number(header, SECTION_KIND)?;
        if index == names {
            kept_names = Some(headers.len());
        } else if kind == SYMBOLS || kind == NAMES {
            continue;
        }
        headers.push(header.to_vec());
    }
    let kept_names = kept_names.context("compiled code does not name its sections")?;

    // The names of the sections move to where the symbols began; all else stays where it is.
    let (names, rest): (Vec<_>, Vec<_>) = (0..headers.len()).partition(|&index| index == kept_names);
    let span = |header: &[u8]| -> Result<(usize, usize)> {
        let start = usize::try_from(number(header, SECTION_OFFSET)?)?;
        let size = usize::try_from(number(header, SECTION_SIZE)?)?;
        Ok((start, start.checked_add(size).context("a section lies beyond the end")?))
    };
    let ends = rest.iter().map(|&index| Ok(span(&headers[index])?.1)).collect::<Result<Vec<_>>>()?;
    let end = ends.into_iter().max().context("compiled code has no sections")?.max(HEADER_BYTES);
    let mut stripped = code.get(..end).context("a section lies beyond the end")?.to_vec();
    for index in names {
        let (from, to) = span(&headers[index])?;
        let offset = u64::try_from(stripped.len())?;
        stripped.extend_from_slice(code.get(from..to).context("the names of sections lie beyond the end")?);
        put(&mut headers[index], SECTION_OFFSET, offset);
    }
    stripped.resize(stripped.len().next_multiple_of(8), 0);
    let table = u64::try_from(stripped.len())?;
    put(&mut stripped, SECTIONS_OFFSET, table);
    put(&mut stripped, SECTION_COUNT, u64::try_from(headers.len())?);
    put(&mut stripped, NAMES_INDEX, u64::try_from(kept_names)?);
    stripped.extend(headers.concat());
    Ok(stripped)
}

/// The bytes from an offset on, if there are so many.
fn piece(bytes: &[u8], from: usize, length: usize) -> Option<&[u8]> {
    bytes.get(from..from.checked_add(length)?)
}

/// A little-endian number in a header.
fn number(header: &[u8], (at, length): (usize, usize)) -> Result<u64> {
    let bytes = piece(header, at, length).context("a header lies beyond the end")?;
    Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

fn put(bytes: &mut [u8], (at, length): (usize, usize), number: u64) {
    bytes[at..at + length].copy_from_slice(&number.to_le_bytes()[..length]);
}

#[cfg(test)]
mod tests;
