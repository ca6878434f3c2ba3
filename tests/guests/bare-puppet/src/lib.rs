//! The puppet, linked as the first-party guests are: without the imports of a process.
use omc_bare as _;

#[path = "../../puppet/src/lib.rs"]
mod puppet;
