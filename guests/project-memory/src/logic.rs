//! What is found, learned, obeyed and said: pure functions of lists of names, texts and the time.

pub mod directives;
pub mod learn;
pub mod scan;
pub mod summary;
