//! What a process was started with, as the kernel shows it to others.
//!
//! The kernel reads a process's arguments and environment from the process's own memory, where
//! they were laid at its start. A copy of the process that lives on has them too, and arguments
//! are shown to everybody who sees it in `/proc`.

use std::sync::OnceLock;

use rustix::io::Errno;

use super::subject::Subject;

/// Where the arguments and the environment of this program lie.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StartArea {
    arguments: (usize, usize),
    environment: (usize, usize),
}

impl StartArea {
    /// Finds it. It never moves while a program runs, so it is looked up once.
    ///
    /// # Errors
    ///
    /// [`Errno::NODATA`] if `/proc/self/stat` cannot be read or does not tell.
    pub fn of_this_program() -> Result<Self, Errno> {
        static FOUND: OnceLock<Option<StartArea>> = OnceLock::new();
        FOUND
            .get_or_init(|| parse(&std::fs::read_to_string("/proc/self/stat").ok()?))
            .ok_or(Errno::NODATA)
    }

    /// Overwrites both with zeros, in a process that is a copy made by
    /// [`Memory::Copied`](super::spawn::Memory::Copied): in one that shares its memory the original
    /// would lose them.
    pub fn forget(self, _subject: &Subject) {
        for (from, to) in [self.arguments, self.environment] {
            let pointer = std::ptr::with_exposed_provenance_mut::<u8>(from);
            // SAFETY: the kernel laid this many bytes there at exec, in the stack of the first
            // thread, which stays mapped for writing as long as the program runs. What looks at
            // them are the C library's variables and the standard library's arguments, both as
            // bytes that end in zero, and neither is used by a child that exists to be confined.
            // If somebody has moved the borders to memory that cannot be written, the child ends
            // here, and with it the launch.
            unsafe { std::ptr::write_bytes(pointer, 0, to - from) };
        }
    }
}

/// Fields 48 to 51, counted behind the name, which may hold anything.
fn parse(stat: &str) -> Option<StartArea> {
    const FIRST_BEHIND_NAME: usize = 3;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields
        .split_whitespace()
        .skip(48 - FIRST_BEHIND_NAME)
        .map(|field| field.parse::<usize>().ok());
    let mut area = || {
        let (from, to) = (fields.next()??, fields.next()??);
        (from != 0 && from <= to).then_some((from, to))
    };
    Some(StartArea {
        arguments: area()?,
        environment: area()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_behind_the_name() {
        let numbers: Vec<String> = (4..=52).map(|number| (number * 10).to_string()).collect();
        let stat = format!("1 (a) b) S {}", numbers.join(" "));
        let expected = StartArea {
            arguments: (480, 490),
            environment: (500, 510),
        };
        assert_eq!(parse(&stat), Some(expected));
        assert_eq!(parse("1 (x) S 1 2"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn the_area_of_this_program_is_known() {
        let area = StartArea::of_this_program().unwrap();
        assert!(area.arguments.0 < area.arguments.1);
    }
}
