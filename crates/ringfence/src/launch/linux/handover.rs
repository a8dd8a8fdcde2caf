//! The inside of a session as bytes, for a second stage that is another program.
//!
//! They travel in a sealed memory file: what is read is what was written, and nothing of it is ever
//! seen in arguments or in an environment. Reading is total: bytes that were not written here are
//! no orders, and nothing is done.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use ringfence_core::plan::Step;
use ringfence_sys::Errno;
use ringfence_sys::files::Kind;
use ringfence_sys::landlock::{AccessFs, AccessNet, Handled, Scope};
use ringfence_sys::process::{Limit, LimitedResource};
use ringfence_sys::seccomp::SockFilter;

use super::acts::{LandlockBuild, Ready};
use super::expected::{Devices, Expect, Expected, What, Writing};
use super::gate::{Making, Wanted};
use super::helper::Hands;
use super::init::{Boundary, Going, Inside, Voice, Words};
use super::seat::{Desk, Seat, Use};
use crate::launch::Linger;

/// Begins every handover. Both ends are one program, so there is one version at a time.
const MARK: &[u8; 16] = b"ringfence-2nd-1\n";
/// No handover is larger: arguments and environment of a command end at a few megabytes.
pub(super) const LARGEST: usize = 16 << 20;

/// Writes the inside of a session down. `None` for an act that cannot travel.
pub(super) fn write(inside: &Inside) -> Option<Vec<u8>> {
    let mut out = Writer(MARK.to_vec());
    out.optional_step(inside.voice.fail_at)?;
    out.fd(&inside.voice.failure)?;
    match &inside.voice.timeline {
        None => out.byte(0),
        Some(timeline) => {
            out.byte(1);
            out.fd(timeline)?;
        }
    }
    out.fd(&inside.end)?;
    out.byte(match inside.linger {
        Linger::No => 0,
        Linger::Yes => 1,
    });
    match &inside.seat.desk {
        None => out.byte(0),
        Some(desk) => {
            out.byte(1);
            out.fd(&desk.socket)?;
            for used in desk.streams {
                out.byte((used == Use::Terminal).into());
            }
        }
    }
    out.bytes(inside.directory.to_bytes())?;
    out.strings(&inside.command.programs)?;
    out.strings(&inside.command.arguments)?;
    out.strings(&inside.command.environment)?;
    out.count(inside.acts.len())?;
    for (step, act) in &inside.acts {
        out.optional_step(Some(*step))?;
        out.act(act)?;
    }
    Some(out.0)
}

/// Reads it again, in the process that was started for it.
///
/// # Errors
///
/// [`Errno::BADMSG`] for anything that [`write`] does not make; the kernel's answer for
/// descriptors that are not there.
pub(super) fn read(
    bytes: &[u8],
    adopt: &dyn Fn(u32) -> Result<OwnedFd, Errno>,
) -> Result<Inside, Errno> {
    let rest = bytes.strip_prefix(MARK).ok_or(Errno::BADMSG)?;
    let mut input = Reader { rest, adopt };
    let inside = Inside {
        boundary: Boundary::PidNamespace,
        going: Going::WhenLetGo,
        hands: Hands::One,
        voice: Arc::new(Voice {
            fail_at: input.optional_step()?,
            failure: input.fd()?,
            timeline: match input.byte()? {
                0 => None,
                1 => Some(input.fd()?),
                _ => return Err(Errno::BADMSG),
            },
        }),
        end: input.fd()?,
        linger: match input.byte()? {
            0 => Linger::No,
            1 => Linger::Yes,
            _ => return Err(Errno::BADMSG),
        },
        // A pid namespace needs none.
        mark: None,
        seat: Seat {
            // Placed when the orders were read.
            given: [const { None }; 3],
            desk: match input.byte()? {
                0 => None,
                1 => {
                    let socket = input.fd()?;
                    let streams = [input.used()?, input.used()?, input.used()?];
                    Some(Desk::new(socket, None, streams)?)
                }
                _ => return Err(Errno::BADMSG),
            },
        },
        directory: input.string()?,
        command: Words {
            programs: input.strings()?,
            arguments: input.strings()?,
            environment: input.strings()?,
        },
        acts: input.list(|input| {
            let step = input.optional_step()?.ok_or(Errno::BADMSG)?;
            Ok((step, input.act()?))
        })?,
        outer: None,
    };
    if input.rest.is_empty() {
        Ok(inside)
    } else {
        Err(Errno::BADMSG)
    }
}

const CAPABILITIES_GONE: u8 = 0;
const CHECKED: u8 = 1;
const DESCRIPTORS: u8 = 2;
const KEYRING: u8 = 3;
const LANDLOCK: u8 = 4;
const LIMITS: u8 = 5;
const PRIVILEGES: u8 = 6;
const SECCOMP: u8 = 7;
const GATE: u8 = 8;

const RESOURCES: [LimitedResource; 8] = [
    LimitedResource::Core,
    LimitedResource::Cpu,
    LimitedResource::Data,
    LimitedResource::Fsize,
    LimitedResource::Msgqueue,
    LimitedResource::Nofile,
    LimitedResource::Nproc,
    LimitedResource::Sigpending,
];

const WANTED: [Wanted; 3] = [Wanted::Datagram, Wanted::Stream, Wanted::Stream6];

const KINDS: [Kind; 8] = [
    Kind::BlockDevice,
    Kind::CharacterDevice,
    Kind::Directory,
    Kind::Fifo,
    Kind::Regular,
    Kind::Socket,
    Kind::Symlink,
    Kind::Unknown,
];

struct Writer(Vec<u8>);

impl Writer {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn word(&mut self, word: u32) {
        self.0.extend_from_slice(&word.to_ne_bytes());
    }

    fn long(&mut self, long: u64) {
        self.0.extend_from_slice(&long.to_ne_bytes());
    }

    fn count(&mut self, count: usize) -> Option<()> {
        self.word(u32::try_from(count).ok()?);
        Some(())
    }

    fn fd(&mut self, fd: &OwnedFd) -> Option<()> {
        self.word(u32::try_from(fd.as_raw_fd()).ok()?);
        Some(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.count(bytes.len())?;
        self.0.extend_from_slice(bytes);
        Some(())
    }

    fn strings(&mut self, strings: &[CString]) -> Option<()> {
        self.count(strings.len())?;
        for string in strings {
            self.bytes(string.to_bytes())?;
        }
        Some(())
    }

    /// One more than the position in the list, or zero.
    fn optional_step(&mut self, step: Option<Step>) -> Option<()> {
        self.byte(match step {
            None => 0,
            Some(step) => position(&Step::ALL, step)?.checked_add(1)?,
        });
        Some(())
    }

    fn act(&mut self, act: &Ready) -> Option<()> {
        match act {
            Ready::CapabilitiesGone => self.byte(CAPABILITIES_GONE),
            Ready::Checked(expected) => {
                self.byte(CHECKED);
                self.expected(expected)?;
            }
            Ready::Descriptors => self.byte(DESCRIPTORS),
            Ready::Gate(making) => {
                self.byte(GATE);
                self.fd(making.over.as_ref()?)?;
                self.count(making.wanted.len())?;
                for wanted in &making.wanted {
                    self.byte(position(&WANTED, *wanted)?);
                }
            }
            Ready::Keyring => self.byte(KEYRING),
            Ready::Landlock(build) => {
                self.byte(LANDLOCK);
                self.word(build.abi);
                self.long(build.handled.fs.bits());
                self.long(build.handled.net.bits());
                self.long(build.handled.scope.bits());
                self.count(build.rules.len())?;
                for (path, rights) in &build.rules {
                    self.bytes(path.to_bytes())?;
                    self.long(rights.bits());
                }
            }
            Ready::Limits(limits) => {
                self.byte(LIMITS);
                self.count(limits.len())?;
                for (resource, limit) in limits {
                    self.byte(position(&RESOURCES, *resource)?);
                    // Every limit that is set has both bounds.
                    self.long(limit.current?);
                    self.long(limit.maximum?);
                }
            }
            Ready::Privileges => self.byte(PRIVILEGES),
            Ready::Seccomp(program, listener) => {
                self.byte(SECCOMP);
                self.count(program.len())?;
                for instruction in program {
                    self.0.extend_from_slice(&instruction.code.to_ne_bytes());
                    self.byte(instruction.jt);
                    self.byte(instruction.jf);
                    self.word(instruction.k);
                }
                match listener {
                    None => self.byte(0),
                    Some(listener) => {
                        self.byte(1);
                        self.fd(listener)?;
                    }
                }
            }
            // Done by whoever made the namespaces, never by a second stage.
            Ready::Capabilities | Ready::Ids { .. } | Ready::Network | Ready::Root(_) => {
                return None;
            }
        }
        Some(())
    }

    fn expected(&mut self, expected: &Expected) -> Option<()> {
        self.word(expected.user);
        self.word(expected.group);
        self.count(expected.left.len())?;
        for (name, device, inode) in &expected.left {
            self.bytes(name.to_bytes())?;
            self.long(*device);
            self.long(*inode);
        }
        self.count(expected.mounts.len())?;
        for expect in &expected.mounts {
            self.bytes(expect.at.to_bytes())?;
            self.byte((expect.writing == Writing::Possible).into());
            self.byte((expect.devices == Devices::Work).into());
            match expect.what {
                What::Closed => self.byte(0),
                What::Device(major, minor) => {
                    self.byte(1);
                    self.word(major);
                    self.word(minor);
                }
                What::Filesystem(magic) => {
                    self.byte(2);
                    self.long(magic);
                }
                What::Host {
                    kind,
                    device: (major, minor),
                    inode,
                } => {
                    self.byte(3);
                    self.byte(position(&KINDS, kind)?);
                    self.word(major);
                    self.word(minor);
                    self.long(inode);
                }
                What::Text { size } => {
                    self.byte(4);
                    self.long(size);
                }
            }
        }
        Some(())
    }
}

fn position<T: Copy + PartialEq>(list: &[T], value: T) -> Option<u8> {
    let position = list.iter().position(|known| *known == value)?;
    u8::try_from(position).ok()
}

fn at<T: Copy>(list: &[T], position: u8) -> Result<T, Errno> {
    list.get(usize::from(position))
        .copied()
        .ok_or(Errno::BADMSG)
}

struct Reader<'a> {
    rest: &'a [u8],
    /// Takes over what is open under a number.
    adopt: &'a dyn Fn(u32) -> Result<OwnedFd, Errno>,
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Errno> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(Errno::BADMSG)?;
        self.rest = rest;
        Ok(*array)
    }

    fn byte(&mut self) -> Result<u8, Errno> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    fn word(&mut self) -> Result<u32, Errno> {
        self.array().map(u32::from_ne_bytes)
    }

    fn long(&mut self) -> Result<u64, Errno> {
        self.array().map(u64::from_ne_bytes)
    }

    fn used(&mut self) -> Result<Use, Errno> {
        match self.byte()? {
            0 => Ok(Use::Other),
            1 => Ok(Use::Terminal),
            _ => Err(Errno::BADMSG),
        }
    }

    fn fd(&mut self) -> Result<OwnedFd, Errno> {
        let number = self.word()?;
        (self.adopt)(number)
    }

    fn string(&mut self) -> Result<CString, Errno> {
        let length = usize::try_from(self.word()?).map_err(|_| Errno::BADMSG)?;
        let (text, rest) = self.rest.split_at_checked(length).ok_or(Errno::BADMSG)?;
        self.rest = rest;
        CString::new(text).map_err(|_| Errno::BADMSG)
    }

    /// Reads as many as were written; a number that is too large runs out of bytes.
    fn list<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<T, Errno>,
    ) -> Result<Vec<T>, Errno> {
        let count = self.word()?;
        let mut out = Vec::new();
        for _ in 0..count {
            out.push(one(self)?);
        }
        Ok(out)
    }

    fn strings(&mut self) -> Result<Vec<CString>, Errno> {
        self.list(Self::string)
    }

    fn optional_step(&mut self) -> Result<Option<Step>, Errno> {
        match self.byte()?.checked_sub(1) {
            None => Ok(None),
            Some(position) => at(&Step::ALL, position).map(Some),
        }
    }

    fn act(&mut self) -> Result<Ready, Errno> {
        Ok(match self.byte()? {
            CAPABILITIES_GONE => Ready::CapabilitiesGone,
            CHECKED => Ready::Checked(self.expected()?),
            DESCRIPTORS => Ready::Descriptors,
            GATE => Ready::Gate(Making {
                over: Some(self.fd()?),
                wanted: self.list(|input| at(&WANTED, input.byte()?))?,
            }),
            KEYRING => Ready::Keyring,
            LANDLOCK => Ready::Landlock(LandlockBuild {
                abi: self.word()?,
                handled: Handled {
                    fs: AccessFs::from_bits(self.long()?).ok_or(Errno::BADMSG)?,
                    net: AccessNet::from_bits(self.long()?).ok_or(Errno::BADMSG)?,
                    scope: Scope::from_bits(self.long()?).ok_or(Errno::BADMSG)?,
                },
                rules: self.list(|input| {
                    let path = input.string()?;
                    let rights = AccessFs::from_bits(input.long()?).ok_or(Errno::BADMSG)?;
                    Ok((path, rights))
                })?,
                // What was granted was mounted by its descriptor before this stage began.
                granted: Vec::new(),
            }),
            LIMITS => Ready::Limits(self.list(|input| {
                let resource = at(&RESOURCES, input.byte()?)?;
                let limit = Limit {
                    current: Some(input.long()?),
                    maximum: Some(input.long()?),
                };
                Ok((resource, limit))
            })?),
            PRIVILEGES => Ready::Privileges,
            SECCOMP => {
                let program = self.list(|input| {
                    Ok(SockFilter {
                        code: input.array().map(u16::from_ne_bytes)?,
                        jt: input.byte()?,
                        jf: input.byte()?,
                        k: input.word()?,
                    })
                })?;
                let listener = match self.byte()? {
                    0 => None,
                    1 => Some(self.fd()?),
                    _ => return Err(Errno::BADMSG),
                };
                Ready::Seccomp(program, listener)
            }
            _ => return Err(Errno::BADMSG),
        })
    }

    fn expected(&mut self) -> Result<Expected, Errno> {
        Ok(Expected {
            user: self.word()?,
            group: self.word()?,
            left: self.list(|input| Ok((input.string()?, input.long()?, input.long()?)))?,
            mounts: self.list(|input| {
                Ok(Expect {
                    at: input.string()?,
                    writing: match input.byte()? {
                        0 => Writing::Refused,
                        1 => Writing::Possible,
                        _ => return Err(Errno::BADMSG),
                    },
                    devices: match input.byte()? {
                        0 => Devices::Refused,
                        1 => Devices::Work,
                        _ => return Err(Errno::BADMSG),
                    },
                    what: match input.byte()? {
                        0 => What::Closed,
                        1 => What::Device(input.word()?, input.word()?),
                        2 => What::Filesystem(input.long()?),
                        3 => What::Host {
                            kind: at(&KINDS, input.byte()?)?,
                            device: (input.word()?, input.word()?),
                            inode: input.long()?,
                        },
                        4 => What::Text {
                            size: input.long()?,
                        },
                        _ => return Err(Errno::BADMSG),
                    },
                })
            })?,
        })
    }
}

#[cfg(test)]
#[path = "handover_tests.rs"]
mod tests;
