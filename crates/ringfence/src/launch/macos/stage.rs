//! The life of a second stage: it reads its orders, restricts itself and becomes the command; or, with a
//! terminal of the session's own, starts it and stays beside it; or it keeps a session, and ends it if its
//! supervisor cannot.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use ringfence_core::cleanup::end_session;
use ringfence_core::path::AbsPath;
use ringfence_core::seatbelt::SessionDirectory;
use ringfence_sys::{Subject, descriptors, seatbelt, signals};
use rustix::process::{Pid, Resource, Rlimit, setrlimit};

use super::desk::{Attended, Seat};
use super::orders::{self, Bound, Failure, Keep, Orders, Task};
use super::os;
use super::table::Table;

/// The status of a second stage that did not become its command.
pub(super) const FAILED: i32 = 125;

/// Reads the orders under a descriptor's number and carries them out.
#[expect(clippy::exit, reason = "this process was started for nothing else")]
pub(crate) fn live_as_second_stage(number: Option<u32>) -> ! {
    let subject = Subject::second_stage();
    match read(&subject, number) {
        Some(Task::Become(orders)) => {
            let failure = descriptors::inherited(&subject, orders.failure);
            match carry_out(&subject, orders) {
                Ok(desk) => {
                    // Its silence says that the command runs.
                    drop(failure);
                    std::process::exit(desk.attend(&subject));
                }
                Err(error) => {
                    // If nobody listens any more there is nobody to tell.
                    if let (Ok(failure), Ok(text)) = (failure, serde_json::to_vec(&error)) {
                        let _ = File::from(failure).write_all(&text);
                    }
                }
            }
        }
        Some(Task::Keep(keep)) => std::process::exit(stand_by(&subject, &keep)),
        None => {}
    }
    std::process::exit(FAILED)
}

fn read(subject: &Subject, number: Option<u32>) -> Option<Task> {
    let number = i32::try_from(number?).ok()?;
    let pipe = descriptors::inherited(subject, number).ok()?;
    orders::receive(File::from(pipe)).ok()?
}

/// Waits until the supervisor is gone or done, and makes sure that nothing of the session is left.
fn stand_by(subject: &Subject, keep: &Keep) -> i32 {
    let parent = AbsPath::parse(os(keep.parent.clone()));
    let (Ok(parent), Ok(number)) = (parent, keep.number.parse()) else {
        return FAILED;
    };
    let directory = SessionDirectory::new(&parent, number);
    let Ok(lifeline) = descriptors::inherited(subject, keep.lifeline) else {
        return FAILED;
    };
    // Nobody writes: there is only an end to be read.
    let _ = File::from(lifeline).read(&mut [0]);
    let group = keep.group.and_then(Pid::from_raw);
    let ended = end_session(&mut Table::new(&directory, group));
    let _ = std::fs::remove_dir_all(directory.path().as_path());
    if ended.is_ok() { 0 } else { FAILED }
}

/// Does everything that was ordered, and becomes the command. Returns only what went wrong; or, with a
/// terminal of the session's own, the command that was started.
fn carry_out(subject: &Subject, orders: Orders) -> Result<Attended, Failure> {
    let failed = |what: &str, error: &io::Error| Failure::Prepare {
        what: what.to_owned(),
        errno: error.raw_os_error(),
    };
    let desk = orders.desk.map(|desk| Seat::take(subject, desk));
    let desk = desk.transpose();
    let desk = desk.map_err(|error| failed("give the command its terminal", &error))?;
    std::env::set_current_dir(os(orders.directory))
        .map_err(|error| failed("enter the working directory", &error))?;
    for (bound, value) in orders.limits {
        let resource = match bound {
            Bound::Cpu => Resource::Cpu,
            Bound::FileSize => Resource::Fsize,
            Bound::Files => Resource::Nofile,
        };
        let limit = Rlimit {
            current: Some(value),
            maximum: Some(value),
        };
        setrlimit(resource, limit).map_err(|errno| failed("set limits", &errno.into()))?;
    }
    signals::unblock_all(subject).map_err(|errno| failed("restore signals", &errno.into()))?;
    descriptors::close_from_at_exec(subject, 3)
        .map_err(|error| failed("close descriptors", &error))?;
    let parameters = orders
        .parameters
        .into_iter()
        .flat_map(|(name, value)| [name, value]);
    let parameters: Result<Vec<CString>, _> = parameters.map(CString::new).collect();
    let (Ok(profile), Ok(parameters)) = (CString::new(orders.profile), parameters) else {
        return Err(Failure::Profile {
            reason: "a parameter holds a zero byte".to_owned(),
        });
    };
    // From here on nothing can be opened that the command could not open.
    seatbelt::apply(subject, &profile, &parameters)
        .map_err(|refused| Failure::Profile { reason: refused.0 })?;
    let mut arguments = orders.arguments.into_iter().map(os);
    let name = arguments.next().unwrap_or_default();
    let arguments: Vec<_> = arguments.collect();
    let mut refusal = None;
    for program in orders.programs {
        let mut command = Command::new(os(program));
        command.arg0(&name).args(&arguments).env_clear();
        for variable in &orders.environment {
            let at = variable.iter().position(|byte| *byte == b'=');
            let (variable, value) = variable.split_at(at.unwrap_or(variable.len()));
            let value = value.get(1..).unwrap_or_default();
            command.env(os(variable.to_vec()), os(value.to_vec()));
        }
        let error = match &desk {
            None => command.exec(),
            Some(_) => match command.process_group(0).spawn() {
                Ok(child) => {
                    let seat = desk.ok_or(Failure::NotFound)?;
                    return Ok(Attended { seat, child });
                }
                Err(error) => error,
            },
        };
        // As a shell does: a name that is nowhere is "not found"; one that is somewhere and cannot
        // be run is "cannot be run", unless a later one can.
        let absent = matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        );
        if !absent {
            refusal.get_or_insert_with(|| error.raw_os_error());
        }
    }
    Err(match refusal {
        Some(errno) => Failure::NotExecutable { errno },
        None => Failure::NotFound,
    })
}
