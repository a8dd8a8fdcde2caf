//! 56, 57: descriptors that were open before, and files opened again by their numbers.

use std::fs::File;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Stdio;

use ringfence_core::plan::Step;
use ringfence_testkit::{Done, Setup, World, binaries, for_each_user, op};

#[test]
fn nothing_that_the_launcher_had_open_is_inherited() {
    for_each_user(binaries!(), |world| {
        let leaking = world.setup().leaking(&world.outside(""));
        let inside = world.inside(&leaking, ["descriptors"]);
        assert_eq!(inside.line(), "ok:0 1 2");
        // The control: they are there to be inherited.
        let open = world.inside(&leaking.clone().without(Step::Descriptors), ["descriptors"]);
        // The command's own exec would close them too: that is the second guard.
        assert_eq!(open.line(), "ok:0 1 2");
        // And the first process has none of them open either.
        let script = "for fd in /proc/1/fd/*; do echo $fd; done | wc -l";
        if world.ids().0 == 0 {
            let few: u32 = world
                .run(&leaking, ["sh", "-c", script])
                .text()
                .parse()
                .unwrap();
            assert!(few <= 10, "the first process holds {few} descriptors");
            let without = leaking.without(Step::Descriptors);
            let many: u32 = world
                .run(&without, ["sh", "-c", script])
                .text()
                .parse()
                .unwrap();
            assert!(many > 200, "the control: it inherited only {many}");
        }
    });
}

/// The probe with this file as standard input.
fn with_input(
    world: &World,
    setup: Option<&Setup>,
    input: File,
    operation: &[std::ffi::OsString],
) -> Done {
    let probe = world.path("bin/probe");
    let mut command = match setup {
        None => world.command(&probe),
        Some(setup) => world.confine(setup, [&probe]),
    };
    Done::of(command.args(operation).stdin(Stdio::from(input)))
}

#[test]
fn a_file_given_to_read_is_not_opened_again_to_write() {
    for_each_user(binaries!(), |world| {
        let canary = world.outside("canary");
        for mode in ["write", "truncate"] {
            let reopen = op!["reopen", "0", mode];
            let free = with_input(world, None, File::open(&canary).unwrap(), &reopen);
            assert_eq!(free.line(), "ok");
            world.restore();
            let before = world.snapshot();
            let setup = world.setup();
            let input = || File::open(&canary).unwrap();
            assert_eq!(
                with_input(world, Some(&setup), input(), &reopen).line(),
                "EACCES"
            );
            before.assert_same(world.guarded());
            // Landlock is what holds: the file was opened on the host's own mount.
            let without = setup.without(Step::Landlock);
            assert_eq!(
                with_input(world, Some(&without), input(), &reopen).line(),
                "ok"
            );
            world.restore();
        }
        // It can be read again, as scripts do.
        let input = File::open(&canary).unwrap();
        let again = with_input(
            world,
            Some(&world.setup()),
            input,
            &op!["reopen", "0", "read"],
        );
        assert_eq!(again.line(), "ok");
    });
}

/// What is given with a stream, and said so in the threat model: a descriptor carries the mount it
/// was opened on, so mode and times can be changed through one that may only read. The contents
/// cannot.
#[test]
fn a_file_given_to_read_gives_its_mode_and_nothing_else() {
    for_each_user(binaries!(), |world| {
        let canary = world.outside("canary");
        let input = || File::open(&canary).unwrap();
        let change = op!["fchmod", "0"];
        let setup = world.setup();
        assert_eq!(
            with_input(world, Some(&setup), input(), &change).line(),
            "ok"
        );
        world.restore();
        let before = world.snapshot();
        let reopen = op!["reopen", "0", "write"];
        let done = with_input(world, Some(&setup), input(), &reopen);
        assert_eq!(done.line(), "EACCES");
        before.assert_same(world.guarded());
    });
}

/// What a rule takes away inside a grant, Landlock cannot: such a file is not passed at all.
#[test]
fn a_file_that_would_be_more_when_opened_again_is_not_passed() {
    for_each_user(binaries!(), |world| {
        let hidden = world.home(".ssh/id_canary");
        let protected = world.project(".vscode/tasks.json");
        std::fs::create_dir_all(protected.parent().unwrap()).unwrap();
        let build = || {
            world.restore();
            std::fs::write(&protected, "{}").unwrap();
            world.own();
        };
        let append = || File::options().append(true).open(&hidden).unwrap();
        let read = || File::open(&protected).unwrap();
        let opened: [(&dyn Fn() -> File, &str); 2] = [(&append, "read"), (&read, "write")];
        for (open, mode) in opened {
            build();
            let reopen = op!["reopen", "0", mode];
            assert_eq!(with_input(world, None, open(), &reopen).line(), "ok");
            build();
            let before = world.snapshot();
            let done = with_input(world, Some(&world.setup()), open(), &reopen);
            done.assert_status(125);
            let expected = format!(
                "opened again to be {}",
                if mode == "read" { "read" } else { "written" }
            );
            assert!(done.stderr.contains(&expected), "{}", done.stderr);
            before.assert_same(world.guarded());
            assert_eq!(std::fs::read(&protected).unwrap(), b"{}");
        }
        // Open for both, it is no more than it was.
        let both = File::options()
            .read(true)
            .write(true)
            .open(&hidden)
            .unwrap();
        let done = with_input(
            world,
            Some(&world.setup()),
            both,
            &op!["reopen", "0", "read"],
        );
        assert_eq!(done.line(), "ok");
    });
}

/// What is given with a file that may be written, and said so in the threat model: all of it can be written
/// over and cut off, also where it was opened to be appended to; and it can be read where the policy lets it
/// be read by its name.
#[test]
fn a_file_given_to_append_is_given_to_write() {
    for_each_user(binaries!(), |world| {
        let canary = world.outside("canary");
        let append = || File::options().append(true).open(&canary).unwrap();
        let strict = world.setup_with(r#""preset": "strict""#);
        // Without the grant of the whole world.
        let root = world
            .path("bin")
            .parent()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let hides = strict
            .settings
            .replace(&format!("{root}\""), &format!("{root}/bin\""));
        let strict = strict.settings(hides);
        for (setup, read) in [(world.setup(), "ok"), (strict, "EACCES")] {
            let open = |mode| with_input(world, Some(&setup), append(), &op!["reopen", "0", mode]);
            assert_eq!(open("read").line(), read);
            for mode in ["write", "cut"] {
                let before = std::fs::read(&canary).unwrap();
                assert_eq!(open(mode).line(), "ok", "{mode}");
                assert_ne!(std::fs::read(&canary).unwrap(), before, "{mode}");
                world.restore();
            }
            // Reading and cutting off at once is reading, too.
            assert_eq!(open("truncate").line(), read);
            world.restore();
        }
    });
}

/// What goes around every mount and every namespace: names are looked up from a directory, and a
/// socket keeps the network it was made in.
#[test]
fn no_stream_leads_out() {
    for_each_user(binaries!(), |world| {
        let home = || File::open(world.home("")).unwrap();
        let read = op!["read-below", "0", ".ssh/id_canary"];
        assert_eq!(with_input(world, None, home(), &read).line(), "ok");
        let done = with_input(world, Some(&world.setup()), home(), &read);
        done.assert_status(125);
        assert!(done.stderr.contains("directory"), "{}", done.stderr);

        let path: OwnedFd = rustix::fs::open(
            world.home(""),
            rustix::fs::OFlags::PATH,
            rustix::fs::Mode::empty(),
        )
        .unwrap();
        let done = with_input(world, Some(&world.setup()), path.into(), &read);
        done.assert_status(125);

        let loopback = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = loopback.local_addr().unwrap();
        let (datagram, _other) = UnixDatagram::pair().unwrap();
        let sockets: [OwnedFd; 4] = [
            UdpSocket::bind("127.0.0.1:0").unwrap().into(),
            TcpStream::connect(address).unwrap().into(),
            loopback.into(),
            datagram.into(),
        ];
        for socket in sockets {
            let done = with_input(world, Some(&world.setup()), socket.into(), &op!["ids"]);
            done.assert_status(125);
            assert!(done.stderr.contains("socket"), "{}", done.stderr);
        }
        // One end of a stream pair is what many programs use instead of a pipe.
        let (stream, _other) = UnixStream::pair().unwrap();
        let stream = OwnedFd::from(stream);
        let done = with_input(world, Some(&world.setup()), stream.into(), &op!["ids"]);
        done.assert_status(0);
    });
}
