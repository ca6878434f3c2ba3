//! Agents' hooks files: the ones this project ships, and what anybody's mean.
//!
//! Not on the path of an event. Both rest on the contracts: an agent, its events, what a matcher of each is compared with, and
//! how long the agent waits.

mod ours;

pub use ours::plugin_file;
