//! A path that somebody granted, exchanged for another one and back while the session is prepared.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use ringfence::approve::bound::Captured;
use ringfence::core::path::AbsPath;
use ringfence::core::permission::{Permission, Permissions};
use ringfence::core::settings::SettingPath;
use ringfence::launch::{Command, LaunchError, prepare};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::world::{World, flag};

/// Where each exchange happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Held {
    /// The launch gets what was held when it was granted.
    Yes,
    /// It looks the path up for itself, as if that had been forgotten.
    No,
}

/// The one that was granted, and the one that stood there for a while.
struct Pair {
    world: World,
    granted: std::path::PathBuf,
    other: std::path::PathBuf,
}

impl Pair {
    fn new(mut world: World) -> Self {
        let parent = world.project.parent().unwrap().to_owned();
        let (granted, other) = (parent.join("granted"), parent.join("other"));
        for directory in [&granted, &other] {
            fs::create_dir(directory).unwrap();
        }
        let list = &mut world.keys.terminal.sandbox.additional_read_write_paths;
        list.push(SettingPath(granted.clone()), flag());
        Self {
            world,
            granted,
            other,
        }
    }

    fn exchange(&self) {
        let exchange = RenameFlags::EXCHANGE;
        renameat_with(CWD, &self.granted, CWD, &self.other, exchange).unwrap();
    }

    /// Grants, prepares and starts, with exchanges before the second and the third of these; both
    /// directories are back in their places when somebody looks whether the grant still holds.
    fn run(&self, held: Held, at_prepare: bool, at_spawn: bool) -> Result<(), LaunchError> {
        let path = AbsPath::parse(&self.granted).unwrap();
        let wanted: Permissions = [Permission::Write(path)].into_iter().collect();
        let captured: Arc<[Captured]> = Captured::all(&wanted).unwrap().into();
        let policy = self.world.policy();
        let plan = self.world.plan(&policy);
        let script = format!("echo x > {}/made", self.granted.display());
        let command = Command {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            directory: self.world.project.clone(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        };
        let mut options = self.world.options.clone();
        if held == Held::Yes {
            options.granted = Arc::clone(&captured);
        }
        let during = |exchanged: bool| {
            if exchanged {
                self.exchange();
            }
        };
        during(at_prepare);
        let prepared = prepare(&policy, &plan, &command, options);
        during(at_prepare);
        assert!(captured.iter().all(Captured::holds), "it is back");
        during(at_spawn);
        let ended = prepared.and_then(|prepared| Ok(prepared.spawn()?.wait()));
        during(at_spawn);
        ended.map(|report| drop(report.unwrap()))
    }

    /// Whether the session wrote there; what it wrote is taken away.
    fn wrote(directory: &Path) -> bool {
        fs::remove_file(directory.join("made")).is_ok()
    }
}

/// Whatever is exchanged and when: the other directory is never written.
pub(crate) fn only_what_was_granted_is_written(world: World) {
    let pair = Pair::new(world);
    pair.run(Held::Yes, false, false).unwrap();
    assert!(Pair::wrote(&pair.granted), "the grant holds");
    // Without the hold, two exchanges are enough: nobody who looks in between sees either.
    pair.run(Held::No, true, true).unwrap();
    assert!(Pair::wrote(&pair.other), "the exchange works");
    for (at_prepare, at_spawn) in [(true, true), (false, true), (true, false)] {
        let ran = pair.run(Held::Yes, at_prepare, at_spawn);
        assert!(
            !Pair::wrote(&pair.other),
            "{at_prepare} {at_spawn}: {ran:?}"
        );
        let wrote = Pair::wrote(&pair.granted);
        assert_eq!(wrote, ran.is_ok(), "{at_prepare} {at_spawn}: {ran:?}");
    }
}
