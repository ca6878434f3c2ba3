//! Code of a real compilation, stripped, damaged and cut.

use std::sync::LazyLock;

use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

use super::*;
use crate::testing;

/// A guest's compiled code as the engine writes it, with the engine that made it.
static COMPILED: LazyLock<(Engine, Vec<u8>)> = LazyLock::new(|| {
    let engine = crate::engine_for(None).expect("an engine for this machine");
    let code = engine.precompile_component(&testing::guest()).expect("code");
    (engine, code)
});

fn contains(code: &[u8], text: &str) -> bool {
    code.windows(text.len()).any(|window| window == text.as_bytes())
}

/// What the guest's exports give for an argument: a number, or the trap's text.
fn call(code: &[u8], export: &str, argument: u32, fuel: u64) -> Result<u32, String> {
    let engine = &COMPILED.0;
    #[expect(unsafe_code, reason = "the engine cannot know that its own code comes straight from its compiler")]
    // SAFETY: the bytes are those of `COMPILED`, stripped by the function under test at most.
    let component = unsafe { Component::deserialize(engine, code) }.map_err(|error| format!("{error:#}"))?;
    let mut store = Store::new(engine, ());
    store.set_fuel(fuel).expect("fuel is counted");
    store.set_epoch_deadline(1);
    let instance = Linker::new(engine).instantiate(&mut store, &component).map_err(|error| format!("{error:#}"))?;
    let function = instance.get_typed_func::<(u32,), (u32,)>(&mut store, export).expect("the export");
    function.call(&mut store, (argument,)).map(|(answer,)| answer).map_err(|error| format!("{:#}", error.root_cause()))
}

#[test]
fn stripped_code_loads_answers_and_fails_as_before() {
    let code = &COMPILED.1;
    let stripped = symbols(code).expect("stripped");
    for (export, argument, fuel, expected) in [
        ("answer", 5, 1_000, Ok(1_234_572)),
        ("answer", u32::MAX, 1_000, Ok(1_234_566)),
        ("fail", 0, 1_000, Err("wasm trap: wasm `unreachable` instruction executed")),
        ("answer", 5, 1, Err("wasm trap: all fuel consumed by WebAssembly")),
    ] {
        let expected = expected.map_err(str::to_owned);
        assert_eq!(call(code, export, argument, fuel), expected, "{export}({argument}) before");
        assert_eq!(call(&stripped, export, argument, fuel), expected, "{export}({argument}) after");
    }
}

#[test]
fn symbols_and_their_names_are_gone_and_sections_keep_theirs() {
    let code = &COMPILED.1;
    let stripped = symbols(code).expect("stripped");
    assert!(stripped.len() < code.len());
    let symbol = format!("function[0]::{}", testing::FUNCTION_NAME);
    assert!(contains(code, &symbol) && !contains(&stripped, &symbol));
    assert!(!contains(&stripped, "omc:manifest"), "custom sections are not in compiled code");
    assert!(!kinds(&stripped).contains(&SYMBOLS) && kinds(code).contains(&SYMBOLS));
    assert_eq!(kinds(&stripped).iter().filter(|kind| **kind == NAMES).count(), 1, "the names of the sections");
    for kept in [".text", ".wasmtime.engine", ".wasmtime.info"] {
        assert!(contains(&stripped, kept), "{kept}");
    }
}

/// The kinds of a file's sections.
fn kinds(code: &[u8]) -> Vec<u64> {
    let (first, count) =
        (number(code, SECTIONS_OFFSET).expect("a table"), number(code, SECTION_COUNT).expect("a count"));
    let kind = |index| {
        let at = usize::try_from(first + index * 64).expect("an offset");
        number(&code[at..], SECTION_KIND).expect("a kind")
    };
    (0..count).map(kind).collect()
}

#[test]
fn stripping_again_changes_nothing() {
    let once = symbols(&COMPILED.1).expect("stripped");
    assert_eq!(symbols(&once).expect("stripped"), once);
}

#[test]
fn what_is_no_compiled_code_is_refused_with_its_reason() {
    let code = &COMPILED.1;
    let with = |(at, length): (usize, usize), number: u64| {
        let mut code = code.clone();
        put(&mut code, (at, length), number);
        code
    };
    // Only the empty section that every file begins with: nothing is left below the header.
    let only_header = {
        let mut code = with(SECTION_COUNT, 1);
        put(&mut code, NAMES_INDEX, 0);
        put(&mut code, SECTIONS_OFFSET, 0);
        code.truncate(HEADER_BYTES);
        code
    };
    for (what, code, reason) in [
        ("nothing", Vec::new(), "is not a little-endian ELF-64 file"),
        ("a component", testing::guest(), "is not a little-endian ELF-64 file"),
        ("a 32-bit file", b"\x7fELF\x01\x01".repeat(64), "is not a little-endian ELF-64 file"),
        ("only a magic number", b"\x7fELF\x02\x01".to_vec(), "a header lies beyond the end"),
        ("no sections", with(SECTION_COUNT, 0), "does not name its sections"),
        ("names nowhere", with(NAMES_INDEX, 0xffff), "does not name its sections"),
        ("a table far away", with(SECTIONS_OFFSET, u64::MAX), "a section's header lies beyond the end"),
        ("a table at the end", with(SECTIONS_OFFSET, code.len() as u64), "a section's header lies beyond the end"),
        ("only a header", only_header, "compiled code has no sections"),
    ] {
        let error = symbols(&code).map(|code| code.len()).expect_err(what);
        assert!(format!("{error:#}").contains(reason), "{what}: {error:#}");
    }
}

#[test]
fn a_section_beyond_the_end_is_refused() {
    let code = &COMPILED.1;
    let first = usize::try_from(number(code, SECTIONS_OFFSET).expect("a table")).expect("an offset");
    // The first section after the empty one.
    let header = first + SECTION_HEADER_BYTES;
    for (field, value) in [
        (SECTION_SIZE, u64::MAX),
        (SECTION_SIZE, code.len() as u64),
        (SECTION_OFFSET, u64::MAX),
        (SECTION_OFFSET, code.len() as u64 + 1),
    ] {
        let mut damaged = code.clone();
        put(&mut damaged[header..], field, value);
        let error = symbols(&damaged).map(|code| code.len()).expect_err("a section beyond the end");
        assert!(format!("{error:#}").contains("beyond the end"), "{field:?} {value}: {error:#}");
    }
}

#[test]
fn cut_and_damaged_code_is_an_error_or_code_and_never_a_panic() {
    let code = &COMPILED.1;
    let table = usize::try_from(number(code, SECTIONS_OFFSET).expect("a table")).expect("an offset");
    // Every place in the headers; elsewhere nothing is read, so few cuts show it.
    let in_headers = (0..HEADER_BYTES).chain(table..code.len());
    let cuts = (0..table).step_by(1 + table / 200);
    for end in in_headers.clone().chain(cuts) {
        assert!(symbols(&code[..end]).is_err(), "cut to {end} bytes");
    }
    for at in in_headers {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut damaged = code.clone();
            damaged[at] = byte;
            // The engine checks what it loads; here only the length counts, so that nothing is made up.
            if let Ok(stripped) = symbols(&damaged) {
                assert!(stripped.len() <= 2 * code.len(), "byte {at} is {byte}: {} bytes", stripped.len());
            }
        }
    }
}
