//! Between an agent's JSON and the canonical event and decision: everything that knows what an agent sends and takes.
//!
//! - [`event`]: the canonical event and what guests may read of it;
//! - [`contract`]: one table, (agent × event) → what an answer can still change, and how it is written;
//! - [`decision`]: what guests say, and how their opinions become one answer within a contract;
//! - [`matcher`]: whether a subscription is about an event;
//! - [`tool`]: what a tool call does, whichever agent makes it;
//! - [`dialect`]: which agent speaks, and the bytes it is answered with.
//!
//! Nothing here does I/O or knows of WebAssembly.

#![warn(missing_docs)]

pub mod contract;
pub mod decision;
pub mod dialect;
pub mod event;
pub mod matcher;
pub mod tool;

#[cfg(test)]
pub(crate) mod samples;
