//! Disks that take nothing: full ones, and ones that can only be read.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::world::create_dirs;

/// A small file system, mounted somewhere; gone when it is dropped.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Absent where this user may not mount, which is said on standard error.
    pub(crate) fn mount(at: &Path) -> Option<Self> {
        create_dirs(at);
        let disk =
            Self::run("mount", &["-t", "tmpfs", "-o", "size=256k,mode=0700", "tmpfs"], at).then(|| Self(at.to_owned()));
        if disk.is_none() {
            drop(writeln!(std::io::stderr(), "not tested: mounting a small disk needs root"));
        }
        disk
    }

    pub(crate) fn remount(&self, how: &str) {
        assert!(Self::run("mount", &["-o", how], &self.0));
    }

    /// Takes all the space that is left.
    pub(crate) fn fill(&self) {
        let mut file = fs::File::create(self.0.join("filling")).expect("room for a name");
        while file.write_all(&[b'x'; 512]).is_ok() {}
    }

    fn run(program: &str, args: &[&str], at: &Path) -> bool {
        let mut command = Command::new(program);
        command.args(args).arg(at).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Self::run("umount", &["-l"], &self.0);
    }
}
