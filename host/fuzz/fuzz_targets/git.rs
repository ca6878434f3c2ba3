#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| omc_fuzz::git(data));
