use std::fs::File;

use super::*;

fn null() -> OwnedFd {
    File::open("/dev/null").unwrap().into()
}

fn strings(list: &[&str]) -> Vec<CString> {
    list.iter()
        .map(|text| CString::new(*text).unwrap())
        .collect()
}

fn inside() -> Inside {
    let expect = |what, writing, devices| Expect {
        at: c"/somewhere\xff".to_owned(),
        what,
        writing,
        devices,
    };
    let acts = vec![
        (Step::Keyring, Ready::Keyring),
        (
            Step::Root,
            Ready::Checked(Expected {
                user: 1000,
                group: 1001,
                left: vec![(c"mnt".to_owned(), 4, u64::MAX)],
                mounts: vec![
                    expect(What::Closed, Writing::Refused, Devices::Refused),
                    expect(What::Device(1, 3), Writing::Possible, Devices::Work),
                    expect(What::Filesystem(7), Writing::Possible, Devices::Refused),
                    expect(
                        What::Host {
                            kind: Kind::Directory,
                            device: (8, 1),
                            inode: 42,
                        },
                        Writing::Refused,
                        Devices::Refused,
                    ),
                    expect(What::Text { size: 99 }, Writing::Refused, Devices::Refused),
                ],
            }),
        ),
        (Step::Descriptors, Ready::Descriptors),
        (
            Step::Limits,
            Ready::Limits(vec![(
                LimitedResource::Nproc,
                Limit {
                    current: Some(5),
                    maximum: Some(6),
                },
            )]),
        ),
        (Step::Capabilities, Ready::CapabilitiesGone),
        (Step::Privileges, Ready::Privileges),
        (
            Step::Landlock,
            Ready::Landlock(LandlockBuild {
                abi: 7,
                handled: Handled {
                    fs: AccessFs::of_abi(7),
                    net: AccessNet::BIND_TCP,
                    scope: Scope::of_abi(7),
                },
                rules: vec![(c"/usr".to_owned(), AccessFs::EXECUTE)],
                granted: Vec::new(),
            }),
        ),
        (
            Step::Seccomp,
            Ready::Seccomp(
                vec![SockFilter {
                    code: 6,
                    jt: 1,
                    jf: 2,
                    k: 0x7fff_0000,
                }],
                None,
            ),
        ),
    ];
    Inside {
        boundary: Boundary::PidNamespace,
        going: Going::WhenLetGo,
        hands: Hands::One,
        acts,
        directory: c"/project".to_owned(),
        command: Words {
            programs: strings(&["/bin/sh", "/usr/bin/sh"]),
            arguments: strings(&["sh", "-c", "--bind / /"]),
            environment: strings(&["A=b\nc", "D="]),
        },
        voice: Arc::new(Voice {
            failure: null(),
            timeline: None,
            fail_at: Some(Step::Init),
        }),
        end: null(),
        seat: Seat {
            given: [const { None }; 3],
            desk: Desk::new(null(), None, [Use::Terminal, Use::Other, Use::Terminal]).ok(),
        },
        mark: None,
        linger: Linger::Yes,
        outer: None,
    }
}

fn adopt(number: u32) -> Result<OwnedFd, Errno> {
    if number == u32::MAX {
        return Err(Errno::BADF);
    }
    Ok(null())
}

#[test]
fn what_is_read_is_what_was_written() {
    let before = inside();

    let after = read(&write(&before).unwrap(), &adopt).unwrap();

    assert_eq!(format!("{:?}", after.acts), format!("{:?}", before.acts));
    assert_eq!(after.voice.fail_at, before.voice.fail_at);
    assert_eq!(after.directory, before.directory);
    assert_eq!(after.command.programs, before.command.programs);
    assert_eq!(after.command.arguments, before.command.arguments);
    assert_eq!(after.command.environment, before.command.environment);
    assert!(after.outer.is_none() && after.voice.timeline.is_none());
    assert_eq!(after.linger, before.linger);
    assert_eq!(after.seat.uses(), before.seat.uses());
}

#[test]
fn the_numbers_of_descriptors_travel() {
    let mut before = inside();
    Arc::get_mut(&mut before.voice).unwrap().timeline = Some(null());
    let numbers = std::cell::RefCell::new(Vec::new());

    let read = read(&write(&before).unwrap(), &|number| {
        numbers.borrow_mut().push(number);
        adopt(number)
    });

    assert!(read.unwrap().voice.timeline.is_some());
    let expected = [
        &before.voice.failure,
        before.voice.timeline.as_ref().unwrap(),
        &before.end,
        &before.seat.desk.as_ref().unwrap().socket,
    ];
    let expected = expected.map(|fd| fd.as_raw_fd().unsigned_abs());
    assert_eq!(*numbers.borrow(), expected);
}

#[test]
fn the_sockets_of_a_gate_are_asked_for_over_there() {
    let mut before = inside();
    let wanted = vec![Wanted::Stream, Wanted::Datagram, Wanted::Stream6];
    let making = Making {
        over: Some(null()),
        wanted: wanted.clone(),
    };
    before.acts = vec![(Step::Gate, Ready::Gate(making))];

    let after = read(&write(&before).unwrap(), &adopt).unwrap();

    let [(Step::Gate, Ready::Gate(making))] = &after.acts[..] else {
        panic!("{:?}", after.acts);
    };
    assert_eq!(making.wanted, wanted);
    assert!(making.over.is_some());
    before.acts[0].1.let_go();
    assert!(
        write(&before).is_none(),
        "without its socket there is no order"
    );
}

#[test]
fn a_root_of_our_own_does_not_travel() {
    let mut before = inside();
    before.acts.push((Step::Loopback, Ready::Network));
    assert!(write(&before).is_none());
}

#[test]
fn other_bytes_are_no_orders() {
    let good = write(&inside()).unwrap();
    for length in 0..good.len() {
        assert!(read(&good[..length], &adopt).is_err(), "{length}");
    }
    let mut longer = good.clone();
    longer.push(0);
    assert!(read(&longer, &adopt).is_err());
    for index in 0..good.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut damaged = good.clone();
            damaged[index] = byte;
            // Whatever it says, it must say it without a panic and without endless memory.
            let _ = read(&damaged, &adopt);
        }
    }
}
