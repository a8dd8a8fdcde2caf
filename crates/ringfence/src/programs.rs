//! Which other files a single program needs to run.
//!
//! Whoever grants one file as a program means that it can be run: so its loader and the libraries
//! that it names come with it, and for a script its interpreter with all that this one needs.
//! Nothing around them does: not their directories, not their neighbours.
//!
//! The search follows the rules of the loader, as far as they are settled before a program runs:
//! what it opens later by name is for its user to grant. What a file asks for is not believed: only
//! files that are themselves programs, libraries or scripts are ever added, and never one that
//! the policy hides by a rule. So a hostile program can name a key and not get it.

use std::cell::Cell;
use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ringfence_core::origin::{Layer, Origin};
use ringfence_core::path::AbsPath;
use ringfence_core::policy::{self, Access, Complaint, Found, Look, Place, Policy, Seen};
use ringfence_core::settings::{Keys, SettingPath, Settings};

use crate::elf::{self, Image, Names};
use crate::lookout::Lookout;

/// Files as the search sees them.
pub trait Files {
    /// Opens a regular file; `None` for everything else.
    fn open(&self, path: &Path) -> Option<Box<dyn Image>>;
}

/// The files of this machine.
#[derive(Clone, Copy, Debug)]
pub struct OnDisk;

impl Files for OnDisk {
    fn open(&self, path: &Path) -> Option<Box<dyn Image>> {
        let nonblocking = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        let flags = i32::try_from(nonblocking.bits()).ok()?;
        // A pipe must not be able to hold us up.
        let options = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file: File = options.ok()?;
        file.metadata().ok()?.is_file().then_some(())?;
        Some(Box::new(file))
    }
}

/// Programs with more files than this are not expanded further.
const MOST_FILES: usize = 2048;
/// How often the search looks at a file before it gives up: real programs need some thousands.
const MOST_LOOKS: usize = 1 << 16;
/// How many scripts may stand before a program; the kernel allows fewer.
const MOST_SCRIPTS: usize = 5;
/// How much of a script's first line the kernel reads.
const FIRST_LINE: usize = 256;
/// Where `env` looks when nobody says otherwise.
const PROGRAM_DIRECTORIES: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];
/// Where loaders look without being told, in their order; those of other distributions are absent.
const LIBRARY_DIRECTORIES: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];
const CACHE: &str = "/etc/ld.so.cache";
/// A cache with twenty thousand libraries has about two megabytes.
const LARGEST_CACHE: usize = 16 << 20;

/// Every file that a program needs besides itself, by the names its loader will use.
///
/// A library that cannot be found is left out: the program will say so itself, as it would
/// anywhere else.
pub fn closure(program: &Path, files: &dyn Files) -> Vec<PathBuf> {
    let mut search = Search {
        files,
        cache: None,
        out: Vec::new(),
        known: HashSet::new(),
        loaded: HashSet::new(),
        looks: Cell::new(0),
    };
    search.program(program, 0);
    search.out
}

struct Search<'a> {
    files: &'a dyn Files,
    cache: Option<Vec<(Vec<u8>, Vec<u8>)>>,
    out: Vec<PathBuf>,
    known: HashSet<PathBuf>,
    /// Libraries by the names they were asked for: a loader searches for each name once.
    loaded: HashSet<Vec<u8>>,
    looks: Cell<usize>,
}

/// A program or library, and who asked for it.
struct Loaded {
    names: Names,
    directory: PathBuf,
    by: Option<Rc<Loaded>>,
}

impl Search<'_> {
    fn add(&mut self, path: PathBuf) -> bool {
        let new = self.out.len() < MOST_FILES && self.known.insert(path.clone());
        if new {
            self.out.push(path);
        }
        new
    }

    fn program(&mut self, path: &Path, scripts: usize) {
        let Some(image) = self.files.open(path) else {
            return;
        };
        if let Some(names) = elf::names(&*image) {
            self.libraries(path, names);
        } else if scripts < MOST_SCRIPTS {
            for interpreter in interpreters(&*image) {
                self.interpreter(&interpreter, scripts);
            }
        }
    }

    fn interpreter(&mut self, interpreter: &Interpreter, scripts: usize) {
        let path = match interpreter {
            Interpreter::At(path) => Some(path.clone()),
            Interpreter::Named(name) => PROGRAM_DIRECTORIES
                .iter()
                .map(|directory| Path::new(directory).join(name))
                .find(|path| self.is_program(path)),
        };
        if let Some(path) = path.filter(|path| self.is_program(path))
            && self.add(path.clone())
        {
            self.program(&path, scripts + 1);
        }
    }

    fn is_program(&self, path: &Path) -> bool {
        self.files
            .open(path)
            .is_some_and(|image| elf::names(&*image).is_some() || !interpreters(&*image).is_empty())
    }

    fn libraries(&mut self, path: &Path, names: Names) {
        if let Some(loader) = names.loader.clone().map(|loader| as_path(&loader))
            && loader.is_absolute()
            && self.opened(&loader, names.machine).is_some()
        {
            self.add(loader);
        }
        let mut waiting = VecDeque::from([Rc::new(Loaded {
            directory: directory_of(path),
            names,
            by: None,
        })]);
        while let Some(loaded) = waiting.pop_front() {
            for library in &loaded.names.libraries {
                if self.loaded.contains(library) {
                    continue;
                }
                let Some((path, names)) = self.find(library, &loaded) else {
                    continue;
                };
                self.loaded.insert(library.clone());
                let directory = directory_of(&path);
                if self.add(path) {
                    waiting.push_back(Rc::new(Loaded {
                        names,
                        directory,
                        by: Some(Rc::clone(&loaded)),
                    }));
                }
            }
        }
    }

    fn opened(&self, path: &Path, machine: u16) -> Option<Names> {
        let looks = self.looks.get() + 1;
        if looks > MOST_LOOKS {
            return None;
        }
        self.looks.set(looks);
        let image = self.files.open(path)?;
        elf::names(&*image).filter(|names| names.machine == machine)
    }

    fn find(&mut self, library: &[u8], by: &Rc<Loaded>) -> Option<(PathBuf, Names)> {
        let machine = by.names.machine;
        if library.contains(&b'/') {
            // A name with a slash is a path; a relative one depends on where the program starts.
            let path = expand(library, &by.directory).into_iter().next()?;
            let names = self.opened(&path, machine)?;
            return path.is_absolute().then_some((path, names));
        }
        let name = OsStr::from_bytes(library);
        let mut directories = Vec::new();
        if by.names.own_search.is_none() {
            let mut next = Some(by);
            while let Some(loaded) = next {
                if let (Some(list), None) =
                    (&loaded.names.inherited_search, &loaded.names.own_search)
                {
                    directories.extend(search_list(list, &loaded.directory));
                }
                next = loaded.by.as_ref();
            }
        }
        if let Some(list) = &by.names.own_search {
            directories.extend(search_list(list, &by.directory));
        }
        directories.extend(LIBRARY_DIRECTORIES.map(PathBuf::from));
        for directory in directories {
            let path = directory.join(name);
            if let Some(names) = self.opened(&path, machine) {
                return Some((path, names));
            }
        }
        let (path, names) = self.cached(library, machine)?;
        // Inside, the loader will only find it there with the same cache.
        self.add(PathBuf::from(CACHE));
        Some((path, names))
    }

    fn cached(&mut self, library: &[u8], machine: u16) -> Option<(PathBuf, Names)> {
        if self.cache.is_none() {
            let image = self.files.open(Path::new(CACHE));
            self.cache = Some(image.map(|image| cache(&*image)).unwrap_or_default());
        }
        let entries = self.cache.as_deref().unwrap_or_default();
        entries
            .iter()
            .filter(|(name, _)| name == library)
            .find_map(|(_, path)| {
                let path = as_path(path);
                let names = self.opened(&path, machine)?;
                path.is_absolute().then_some((path, names))
            })
    }
}

fn as_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn directory_of(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

/// The directories of a search list; relative ones depend on where a program starts, and are left
/// out.
fn search_list(list: &[u8], origin: &Path) -> Vec<PathBuf> {
    list.split(|byte| *byte == b':')
        .flat_map(|entry| expand(entry, origin))
        .filter(|directory| directory.is_absolute())
        .collect()
}

/// Replaces what a loader replaces. `$LIB` has two usual values, so there may be two paths.
fn expand(text: &[u8], origin: &Path) -> Vec<PathBuf> {
    let Ok(text) = std::str::from_utf8(text) else {
        return Vec::new();
    };
    let Some(origin) = origin.to_str() else {
        return Vec::new();
    };
    let text = text
        .replace("${ORIGIN}", origin)
        .replace("$ORIGIN", origin)
        .replace("${LIB}", "$LIB");
    let texts = if text.contains("$LIB") {
        let arch = std::env::consts::ARCH;
        vec![
            text.replace("$LIB", &format!("lib/{arch}-linux-gnu")),
            text.replace("$LIB", "lib64"),
        ]
    } else {
        vec![text]
    };
    texts
        .into_iter()
        .filter(|text| !text.contains('$'))
        // The origin is canonical, so a `..` behind it means what it says.
        .filter_map(|text| AbsPath::lexical(text).ok())
        .map(|path| path.as_path().to_owned())
        .collect()
}

/// Who runs a script.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Interpreter {
    /// The file at this path.
    At(PathBuf),
    /// Whatever has this name, for scripts that leave the search to `env`.
    Named(String),
}

/// What the kernel runs in the place of a program: what the first line of a script names, or the
/// loader of a compiled program. None if it runs the program itself.
pub fn interpreter_of(program: &Path, files: &dyn Files) -> Option<PathBuf> {
    let image = files.open(program)?;
    if let Some(names) = elf::names(&*image) {
        return names.loader.as_deref().map(as_path);
    }
    let line = script_line(&*image)?;
    // Blanks end a name, and nothing else does: not the return that some editors put there.
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let first = line.split(blank).find(|word| !word.is_empty())?;
    Some(as_path(first))
}

/// The first line of a script, behind its mark.
fn script_line(image: &dyn Image) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    for offset in 0..FIRST_LINE {
        let mut byte = [0];
        let read = image.read(offset.try_into().unwrap_or(u64::MAX), &mut byte);
        if read.is_none() || byte[0] == b'\n' || byte[0] == 0 {
            break;
        }
        line.push(byte[0]);
        if offset == 1 && line != b"#!" {
            return None;
        }
    }
    line.strip_prefix(b"#!").map(<[u8]>::to_vec)
}

/// The interpreters that the first line of a script names; none if it is not a script.
fn interpreters(image: &dyn Image) -> Vec<Interpreter> {
    let Some(rest) = script_line(image) else {
        return Vec::new();
    };
    let mut words = rest
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let Some(first) = words.next() else {
        return Vec::new();
    };
    let first = as_path(first);
    if !first.is_absolute() {
        return Vec::new();
    }
    let mut out = Vec::new();
    if first.file_name() == Some(OsStr::new("env")) {
        let named = words
            .find(|word| !word.starts_with(b"-") && !word.contains(&b'='))
            .and_then(|word| std::str::from_utf8(word).ok());
        out.extend(named.map(|name| {
            if name.starts_with('/') {
                Interpreter::At(PathBuf::from(name))
            } else {
                Interpreter::Named(name.to_owned())
            }
        }));
    }
    out.insert(0, Interpreter::At(first));
    out
}

/// The names and paths in the loader's cache; empty if it is not as we know it.
fn cache(image: &dyn Image) -> Vec<(Vec<u8>, Vec<u8>)> {
    const OLD_MARK: &[u8] = b"ld.so-1.7.0";
    const OLD_HEADER: u64 = 16;
    const OLD_ENTRY: u64 = 12;
    let mut mark = [0; 16];
    if image.read(0, &mut mark).is_none() {
        return Vec::new();
    }
    let mut start = 0;
    if mark.starts_with(OLD_MARK) {
        // The older table comes first, and the newer one after it, aligned.
        let [.., c0, c1, c2, c3] = mark;
        let count = u64::from(u32::from_ne_bytes([c0, c1, c2, c3]));
        start = (OLD_HEADER + count * OLD_ENTRY).next_multiple_of(8);
    }
    new_cache(image, start).unwrap_or_default()
}

fn new_cache(image: &dyn Image, start: u64) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    const MARK: &[u8] = b"glibc-ld.so.cache1.1";
    const HEADER: usize = 48;
    const ENTRY: usize = 24;
    let mut header = [0; HEADER];
    image.read(start, &mut header)?;
    if !header.starts_with(MARK) {
        return None;
    }
    let word = |bytes: &[u8], at: usize| {
        let bytes = bytes.get(at..at.checked_add(4)?)?;
        usize::try_from(u32::from_ne_bytes(bytes.try_into().ok()?)).ok()
    };
    let count = word(&header, 20)?;
    let strings = word(&header, 24)?;
    let size = count
        .checked_mul(ENTRY)?
        .checked_add(strings)?
        .checked_add(HEADER)?;
    if size > LARGEST_CACHE {
        return None;
    }
    let mut all = vec![0; size];
    image.read(start, &mut all)?;
    let text = |at: usize| {
        let rest = all.get(at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        Some(rest.get(..end)?.to_vec())
    };
    let mut out = Vec::with_capacity(count);
    for index in 0..count {
        let at = HEADER + index * ENTRY;
        // What says which hardware it is for comes last; the loader takes the plain one too.
        if word(&all, at + 16)? == 0 && word(&all, at + 20)? == 0 {
            out.push((text(word(&all, at + 4)?)?, text(word(&all, at + 8)?)?));
        }
    }
    Some(out)
}

/// What the programs that a policy names one by one need beyond it, each with the origin of the
/// rule that names the program.
pub fn needs(policy: &Policy, files: &dyn Files, look: &dyn Fn(&Path) -> Seen) -> Vec<Need> {
    let mut out: Vec<Need> = Vec::new();
    let rules = policy.files();
    let programs = rules.rules().iter().filter(|rule| {
        rule.access == Access::Execute
            && rule.found == Found::File
            && rule.origin.layer() != Layer::BuiltIn
    });
    for program in programs {
        for path in closure(program.path.as_path(), files) {
            let Seen::At(canonical, Found::File) = look(&path) else {
                continue;
            };
            let verdict = rules.access(&canonical);
            let hidden = verdict.access == Access::None && verdict.rule.is_some();
            let ruled = verdict.rule.is_some_and(|rule| rule.path == canonical);
            if verdict.access >= Access::Execute || hidden || ruled {
                continue;
            }
            if !out.iter().any(|need| need.path == path) {
                out.push(Need {
                    path,
                    origin: program.origin.clone(),
                });
            }
        }
    }
    out
}

/// A file that a granted program cannot run without.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Need {
    /// The name its loader uses.
    pub path: PathBuf,
    /// Who granted the program.
    pub origin: Origin,
}

/// Settings –resolve→ policy, with what single programs need.
///
/// # Errors
///
/// Every [`Complaint`].
pub fn resolve(
    settings: &Settings,
    place: &Place,
    look: &dyn Look,
) -> Result<Policy, Vec<Complaint>> {
    let policy = policy::resolve(settings, place, look)?;
    let needs = needs(&policy, &OnDisk, &|path| look.look(path));
    if needs.is_empty() {
        return Ok(policy);
    }
    let mut settings = settings.clone();
    for need in needs {
        let mut keys = Keys::default();
        let layer = need.origin.layer();
        let list = &mut keys.terminal.sandbox.additional_executable_paths;
        list.push(SettingPath(need.path), need.origin);
        settings = settings.with(layer, keys);
    }
    policy::resolve(&settings, place, look)
}

/// The program of this process, which is the supervisor's. Where it was replaced since it was started,
/// the next start is one of what lies there now.
pub(crate) fn own(lookout: &Lookout) -> Option<AbsPath> {
    const REPLACED: &str = " (deleted)";
    let program = std::env::current_exe().ok()?;
    let seen = |path: &Path| match lookout.look(path) {
        Seen::At(path, Found::File) => Some(path),
        Seen::At(..) | Seen::Absent | Seen::Unreadable(_) => None,
    };
    seen(&program).or_else(|| seen(Path::new(program.to_str()?.strip_suffix(REPLACED)?)))
}

#[cfg(test)]
#[path = "programs_tests.rs"]
mod tests;
