//! A network to test in: names, addresses and listeners that exist nowhere else.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::run::Done;
use crate::world::{Binaries, Who, World, copy_program};

/// A network of its own, described; every run in it starts anew.
#[derive(Debug)]
pub struct Network<'w> {
    world: &'w World,
    specs: Vec<String>,
}

/// What came of a run in such a network.
#[derive(Debug)]
pub struct Staged {
    /// The run itself.
    pub done: Done,
    outcome: Value,
}

impl<'w> Network<'w> {
    /// One with these specifications; see `stage`.
    pub fn new(binaries: Binaries, world: &'w World, specs: &[&str]) -> Self {
        let stage = world.path("bin/stage");
        if !stage.try_exists().unwrap() {
            copy_program(binaries.stage, &stage);
            std::fs::write(world.path("resolv.conf"), "nameserver 127.0.0.1\n").unwrap();
            world.own();
        }
        Self {
            world,
            specs: specs.iter().map(|spec| (*spec).to_owned()).collect(),
        }
    }

    /// A command in a network of its own.
    pub fn command(
        &self,
        words: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> (Command, PathBuf) {
        let outcome = self.world.path("outcome.json");
        let mut command = self.world.command("unshare");
        match self.world.who() {
            Who::Caller if crate::world::is_root() => {}
            Who::Caller | Who::Plain => {
                command.args(["--user", "--map-current-user", "--keep-caps"]);
            }
        }
        let resolver = self.world.path("resolv.conf");
        // What is run in the network has no rights there but those of its user.
        let script = r#"
            mount --bind "$1" "$(readlink -f /etc/resolv.conf)" || exit
            test ! -e "$2" || mount --bind "$2" "$(readlink -f /etc/hosts)" || exit
            shift 2
            exec "$@"
        "#;
        command
            .args(["--net", "--mount", "--propagation", "private", "sh", "-c"])
            .args([script, "sh"])
            .arg(resolver)
            // A test may write one.
            .arg(self.world.path("hosts"))
            .arg(self.world.path("bin/stage"))
            .arg(&outcome)
            .args(&self.specs)
            .arg("--");
        if self.world.who() == Who::Plain || !crate::world::is_root() {
            command.args(["setpriv", "--ambient-caps", "-all", "--inh-caps", "-all"]);
        }
        command.args(words);
        (command, outcome)
    }

    /// Runs a command in it.
    #[track_caller]
    pub fn run(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Staged {
        let (mut command, outcome) = self.command(words);
        let _ = std::fs::remove_file(&outcome);
        let done = Done::of(&mut command);
        let text = std::fs::read_to_string(&outcome);
        let text = text.unwrap_or_else(|error| panic!("no outcome: {error}; {done:?}"));
        Staged {
            done,
            outcome: serde_json::from_str(&text).unwrap(),
        }
    }

    /// The probe, free.
    #[track_caller]
    pub fn free(&self, operations: &[OsString]) -> Staged {
        let probe = self.world.path("bin/probe").into_os_string();
        self.run(std::iter::once(probe).chain(operations.iter().cloned()))
    }

    /// Any command, with these hosts allowed.
    #[track_caller]
    pub fn confined(
        &self,
        keys: &str,
        words: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Staged {
        let setup = self.world.setup_with(keys);
        self.confined_with(&setup, words)
    }

    /// Any command, in this setup.
    #[track_caller]
    pub fn confined_with(
        &self,
        setup: &crate::Setup,
        words: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Staged {
        let confine = self.world.path("bin/confine").into_os_string();
        let mut all = vec![confine, setup.to_argument()];
        all.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self.run(all)
    }

    /// The probe, with these hosts allowed.
    #[track_caller]
    pub fn inside(&self, keys: &str, operations: &[OsString]) -> Staged {
        let probe = self.world.path("bin/probe").into_os_string();
        self.confined(
            keys,
            std::iter::once(probe).chain(operations.iter().cloned()),
        )
    }
}

impl Staged {
    /// How often a name was asked for outside.
    pub fn asked(&self, name: &str) -> u64 {
        self.outcome["asked"][name].as_u64().unwrap_or(0)
    }

    /// Every name that was asked for outside.
    pub fn names(&self) -> Vec<&str> {
        let asked = self.outcome["asked"].as_object().unwrap();
        asked.keys().map(String::as_str).collect()
    }

    /// How many connections a listener got.
    #[track_caller]
    pub fn came(&self, address: &str) -> u64 {
        let came = self.outcome["came"][address].as_u64();
        came.unwrap_or_else(|| panic!("nobody listens on {address}"))
    }

    /// What a listener was told, escaped.
    pub fn said(&self, address: &str) -> &str {
        self.outcome["said"][address].as_str().unwrap_or("")
    }
}
