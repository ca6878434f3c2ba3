mod env;
mod file;
mod paths;
mod problem;
mod state_root;
pub use env::{Env, EnvVars};
pub use paths::{Paths, SYSTEM_CONFIG_FILE};
pub use problem::Problem;
pub use state_root::{Parent, Refusal, StateRoot};
