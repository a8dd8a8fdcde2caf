//! The protected names of a session, watched while it runs.
//!
//! What exists is mounted over, and [`super::guard`] refuses calls that would make what does not.
//! Three things are left, and all of them show as a name that appears in a directory: a call that
//! was exchanged after the guard had looked, a host that replaces what is mounted over (which takes
//! the mount away), and a host that makes a protected name itself. So the directories are watched.
//!
//! What the session made is put aside at once, and the session is over: whoever races with the
//! guard is hostile. What the host made gets its mount, as it would have had at the start; where
//! that cannot be done the session is over, too.
//!
//! A host that replaces what is hidden elsewhere (a tool that saves its token by renaming, say) takes the
//! mask away as well. Nothing inside can do that, so those names are only looked at: when a mount goes,
//! when something is heard, and now and then.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::HashMap;
use ringfence_core::path::AbsPath;
use ringfence_core::plan::{Act, Mount, MountKind, Plan, Step};
use ringfence_core::policy::{Access, FileRules, Policy};
use ringfence_sys::Errno;
use ringfence_sys::files;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, Stat};

use super::aside::{open_up, put_aside};
use super::cover::{self, Session};
use super::guard::{Guard, Makes};
use super::holders;
use super::planted::linkless;
use super::watch::{Listener, Mood, Watch, worked};
use super::ways::{Look, Pass, Ways};
use crate::launch::{Cause, LaunchError, NameFound};

/// Nobody looks again at the names of a session that has ended by then, unless it made something.
const SHORT: Duration = Duration::from_millis(20);

/// How long calls that were let through are kept in mind before it is found out what became of them.
const SETTLE: Duration = Duration::from_millis(250);

/// How often what is hidden where nothing inside can write is looked at without a reason.
const NOW_AND_THEN: Duration = Duration::from_millis(100);

/// How often a name is mounted over before the session is given up.
const MOST_TRIES: usize = 8;

/// A protected name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Name {
    pub(super) path: PathBuf,
    /// The topmost directory above it that the session may write in: those between can be replaced.
    pub(super) within: PathBuf,
    /// What may be done with it once it is there.
    pub(super) access: Access,
    pub(super) at_start: AtStart,
}

/// Whether something stood there when the session started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum AtStart {
    Absent,
    /// Something, which was mounted over.
    Mounted,
    /// The same, where nothing inside can write: only the host can make it be seen.
    Hidden,
}

/// The protected names of a plan.
///
/// # Errors
///
/// A link that leads nowhere looks like nothing until the session makes what it leads to, wherever
/// that is. It is somebody else's, so it cannot be put aside afterwards either.
fn of_plan(
    rules: &FileRules,
    plan: &Plan,
    without: Option<Step>,
) -> Result<Vec<Name>, LaunchError> {
    let (mut names, mut hidden) = (Vec::new(), Vec::new());
    let mut tops = Tops::default();
    if without == Some(Step::Names) {
        return Ok(names);
    }
    for act in plan.acts() {
        match act {
            Act::Names { absent } => {
                let mut ways = Ways::default();
                // Those at the top first: where a directory is not there, nothing in it is asked for.
                let mut absent: Vec<&AbsPath> = absent.iter().collect();
                absent.sort_by_cached_key(|name| name.depth());
                for name in absent {
                    if let Some(link) = ways.link_to(name.as_path()) {
                        let link = ringfence_core::text::printable_path(link);
                        let fix = "make what it leads to, or take it away";
                        return Err(LaunchError::Prepare {
                            what: format!("protect {name}: {link} leads to nothing"),
                            source: io::Error::other(fix),
                        });
                    }
                    names.push(named(rules, &mut tops, name, AtStart::Absent));
                }
            }
            Act::Root { mounts, .. } if without != Some(Step::Root) => {
                let kinds: HashMap<&OsStr, &MountKind> = mounts
                    .iter()
                    .map(|mount| (mount.at.as_path().as_os_str(), &mount.kind))
                    .collect();
                for mount in mounts {
                    let Some(at_start) = held(mount, &kinds) else {
                        continue;
                    };
                    let name = named(rules, &mut tops, &mount.at, at_start);
                    match at_start {
                        AtStart::Hidden => hidden.push(name),
                        AtStart::Absent | AtStart::Mounted => names.push(name),
                    }
                }
            }
            _ => {}
        }
    }
    // As [`Names`] wants it.
    names.append(&mut hidden);
    Ok(names)
}

/// For each directory the topmost one at or above it that may be written, if it may itself.
type Tops<'p> = HashMap<&'p OsStr, Option<&'p Path>>;

fn top<'p>(rules: &FileRules, tops: &mut Tops<'p>, directory: &'p Path) -> Option<&'p Path> {
    if let Some(known) = tops.get(directory.as_os_str()) {
        return *known;
    }
    let access = |path| rules.access(&path).access;
    let writable = AbsPath::parse(directory).is_ok_and(|path| access(path) == Access::Write);
    let above = directory.parent().filter(|_| writable);
    let above = above.and_then(|above| top(rules, tops, above));
    let top = above.or_else(|| writable.then_some(directory));
    tops.insert(directory.as_os_str(), top);
    top
}

fn named<'p>(rules: &FileRules, tops: &mut Tops<'p>, path: &'p AbsPath, at_start: AtStart) -> Name {
    let parent = path.above().next().unwrap_or_else(|| Path::new("/"));
    let within = top(rules, tops, parent).unwrap_or(parent);
    Name {
        path: path.as_path().to_owned(),
        within: within.to_owned(),
        access: rules.access(path).access,
        at_start,
    }
}

/// What a mount is that takes something away from files of the host's; `None` for every other.
fn held(mount: &Mount, kinds: &HashMap<&OsStr, &MountKind>) -> Option<AtStart> {
    let mut above = mount.at.above();
    let around = above.find_map(|directory| kinds.get(directory.as_os_str()));
    let around = match around {
        // The base itself, which nobody can write.
        None => Access::Execute,
        Some(MountKind::Bind { access }) => *access,
        Some(_) => return None,
    };
    match (&mount.kind, around) {
        (MountKind::Mask { .. }, Access::Write) => Some(AtStart::Mounted),
        (MountKind::Bind { access }, Access::Write) if *access != Access::Write => {
            Some(AtStart::Mounted)
        }
        (MountKind::Mask { .. }, _) => Some(AtStart::Hidden),
        _ => None,
    }
}

/// What a look at the names found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Holds {
    /// Something inside made a name: the session must end.
    Made,
    /// A name can be held no longer: the session must end.
    NoLonger,
    /// Every name is as it should be.
    Yes,
}

impl Holds {
    /// Why the session must end, if it must.
    pub(super) fn broken(self) -> Option<Cause> {
        match self {
            Self::Made => Some(Cause::NameMade),
            Self::NoLonger => Some(Cause::NameNotHeld),
            Self::Yes => None,
        }
    }
}

/// Watches the names of one session.
#[derive(Debug)]
pub(super) struct Names {
    /// Those that are hidden where nothing inside can write come last.
    all: Arc<[Name]>,
    /// Git directories that get no links.
    linkless: Vec<PathBuf>,
    /// Where the session is, if it said so.
    session: Option<Session>,
    watch: Option<Watch>,
    /// Whether something was let through that may still make a name.
    unsettled: bool,
    /// When that was last found out.
    settled: Instant,
    /// When what is hidden was last looked at; `None` if there is a reason to look.
    looked_at_hidden: Option<Instant>,
    /// What was put aside.
    found: Vec<NameFound>,
    /// Names that the host made, which are its own to keep.
    hosts: Vec<PathBuf>,
    /// Names that could be held no longer.
    not_held: Vec<PathBuf>,
}

/// What became of the names in a session that is over.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) found: Vec<NameFound>,
    pub(super) not_held: Vec<PathBuf>,
}

/// What is needed to find the names, once somebody has the time.
#[derive(Debug)]
pub(super) struct Unnamed {
    rules: Arc<FileRules>,
    linkless: Vec<PathBuf>,
    without: Option<Step>,
}

impl Unnamed {
    pub(super) fn new(policy: &Policy, without: Option<Step>) -> Self {
        Self {
            rules: policy.shared_files(),
            linkless: linkless(policy),
            without,
        }
    }

    /// The names of a plan, before anything of the command's runs.
    ///
    /// # Errors
    ///
    /// As [`of_plan`].
    pub(super) fn of(self, plan: &Plan) -> Result<Names, LaunchError> {
        let names = of_plan(&self.rules, plan, self.without)?;
        Ok(Names::new(names, self.linkless))
    }
}

impl Names {
    fn new(names: Vec<Name>, linkless: Vec<PathBuf>) -> Self {
        Self {
            all: names.into(),
            linkless,
            session: None,
            watch: None,
            unsettled: false,
            settled: Instant::now(),
            looked_at_hidden: None,
            found: Vec::new(),
            hosts: Vec::new(),
            not_held: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What calls that could make one of the names are asked of.
    pub(super) fn guard(&mut self, session: &Session) -> Result<Guard, Errno> {
        let root = files::pin(session.root.as_fd(), c".")?;
        let linkless = std::mem::take(&mut self.linkless);
        Ok(Guard::new(Arc::clone(&self.all), linkless, root))
    }

    /// Says where the session is.
    pub(super) fn hold(&mut self, session: Option<Session>) {
        self.session = session;
    }

    /// How long until [`Names::attend`] is due, if it is at all; `since` the start.
    ///
    /// Nothing can be made inside before the first call is answered, so until then only the host
    /// can, and a look at the names when watching begins finds what it did.
    pub(super) fn due(&self, since: Duration) -> Option<Duration> {
        match &self.watch {
            None => (!self.all.is_empty()).then(|| SHORT.saturating_sub(since)),
            Some(Watch::Listening(_)) if !self.unsettled => None,
            Some(Watch::Listening(_)) => Some(SETTLE.saturating_sub(self.settled.elapsed())),
            Some(Watch::Looking(looking)) => Some(looking.due()),
        }
    }

    /// Does what is due.
    pub(super) fn attend(&mut self, guard: Option<&mut Guard>) -> Holds {
        match &mut self.watch {
            None => self.begin(guard),
            Some(Watch::Listening(_)) => self.check(guard),
            Some(Watch::Looking(looking)) => {
                if looking.should_listen()
                    && let Ok(listener) = Listener::new(&self.all)
                {
                    self.watch = Some(Watch::Listening(listener));
                    // It hears of nothing that was before it.
                    self.looked_at_hidden = None;
                }
                self.check(guard)
            }
        }
    }

    /// Watches from now on, and looks at every name once.
    pub(super) fn begin(&mut self, guard: Option<&mut Guard>) -> Holds {
        if self.watch.is_some() || self.all.is_empty() {
            return Holds::Yes;
        }
        // Where nobody tells of mounts that go, looking alone would be too slow for the host.
        self.watch = Some(match self.uncovered() {
            Some(_) => Watch::looking(),
            None => Watch::listening(&self.all),
        });
        self.check(guard)
    }

    /// Before a call is answered that may make something.
    ///
    /// While nothing counts as let through, whatever is there was made by the host. Once this call
    /// counts that can no longer be told, so what appeared since the last look is seen to first.
    pub(super) fn before_an_answer(&mut self, guard: Option<&mut Guard>) -> Holds {
        match &self.watch {
            None => self.begin(guard),
            Some(Watch::Looking(_)) if !self.unsettled => self.check(guard),
            // A listener is heard before anybody is answered.
            Some(Watch::Listening(_) | Watch::Looking(_)) => Holds::Yes,
        }
    }

    /// A call was let through that may make something.
    pub(super) fn stir(&mut self) {
        if !self.unsettled {
            self.unsettled = true;
            self.settled = Instant::now();
        }
        if let Some(Watch::Looking(looking)) = &mut self.watch {
            looking.stir();
        }
    }

    /// Hears what has appeared; `guard` knows what the session could have made.
    pub(super) fn hear(&mut self, guard: Option<&mut Guard>) -> Holds {
        self.looked_at_hidden = None;
        let heard = match &mut self.watch {
            Some(Watch::Listening(listener)) => listener.heard(&self.all),
            Some(Watch::Looking(looking)) => {
                looking.rouse();
                Vec::new()
            }
            None => return self.begin(guard),
        };
        // First those that were named: until they are out of the way somebody may obey them.
        for index in &heard {
            if let Some(name) = self.all.get(*index).cloned() {
                let holds = self.see_to(&name, guard.as_deref(), &mut Pass::default());
                if holds != Holds::Yes {
                    return holds;
                }
            }
        }
        self.check(guard)
    }

    /// Looks at the names that were not there, before anything is answered.
    ///
    /// The others were mounted over a moment ago, and are looked at when watching begins.
    pub(super) fn first_look(&mut self, guard: Option<&Guard>) -> Holds {
        let all = Arc::clone(&self.all);
        let absent = all.iter().filter(|name| name.at_start == AtStart::Absent);
        self.look_at(absent, guard)
    }

    /// Looks at every name.
    pub(super) fn check(&mut self, mut guard: Option<&mut Guard>) -> Holds {
        let began = worked();
        let settle = self.unsettled && self.settled.elapsed() >= SETTLE;
        if let (true, Some(guard)) = (settle, &mut guard) {
            guard.let_through_mut().before_a_look();
        }
        if let Some(Watch::Listening(listener)) = &mut self.watch
            && listener.follow(&self.all).is_err()
        {
            self.watch = Some(Watch::looking());
        }
        let all = Arc::clone(&self.all);
        let due = self.due_of(&all);
        let holds = self.look_at(all.iter().take(due), guard.as_deref());
        if let (true, Holds::Yes, Some(guard)) = (settle, holds, &mut guard) {
            guard.let_through_mut().after_a_look();
            self.unsettled = !guard.let_through().is_empty();
            self.settled = Instant::now();
        }
        let mood = self.mood(guard.as_deref());
        if let Some(Watch::Looking(looking)) = &mut self.watch {
            looking.looked(began, mood);
        }
        holds
    }

    /// How many of the names are to be looked at: all, or those that the session could make.
    fn due_of(&mut self, all: &[Name]) -> usize {
        let rest = self.looked_at_hidden.map(|looked| looked.elapsed());
        if rest.is_some_and(|rest| rest < NOW_AND_THEN) {
            return all.partition_point(|name| name.at_start != AtStart::Hidden);
        }
        self.looked_at_hidden = Some(Instant::now());
        all.len()
    }

    fn mood(&self, guard: Option<&Guard>) -> Mood {
        if guard.is_some() && self.uncovered().is_some() && !self.unsettled {
            Mood::Calm
        } else {
            Mood::Uneasy
        }
    }

    fn look_at<'n>(
        &mut self,
        names: impl Iterator<Item = &'n Name>,
        guard: Option<&Guard>,
    ) -> Holds {
        let mut holds = Holds::Yes;
        let mut pass = Pass::default();
        for name in names {
            match self.see_to(name, guard, &mut pass) {
                Holds::Made => holds = Holds::Made,
                Holds::NoLonger if holds == Holds::Yes => holds = Holds::NoLonger,
                Holds::NoLonger | Holds::Yes => {}
            }
        }
        holds
    }

    fn see_to<'n>(&mut self, name: &'n Name, guard: Option<&Guard>, pass: &mut Pass<'n>) -> Holds {
        let covered = |session: &Session| session.is_covered(&name.path);
        if name.at_start != AtStart::Absent && self.session.as_ref().is_some_and(covered) {
            return Holds::Yes;
        }
        let status = match pass.look(&name.within, &name.path) {
            Look::Nothing => {
                self.hosts.retain(|host| *host != name.path);
                return Holds::Yes;
            }
            Look::There(status) => Some(status),
            Look::Unknown => None,
        };
        let session = self.session.as_ref();
        let session = session.filter(|_| guard.is_some() || name.at_start == AtStart::Hidden);
        let Some(session) = session else {
            // Nobody was asked before it was made, so whoever made it need not be hostile.
            if name.at_start == AtStart::Absent {
                self.found.extend(put_aside(&name.path));
            }
            return Holds::Yes;
        };
        let Some(status) = status else {
            // What is mounted over stays so where nobody can look.
            return match name.at_start {
                AtStart::Absent => self.no_longer(name),
                AtStart::Mounted | AtStart::Hidden => Holds::Yes,
            };
        };
        if session.is_covered(&name.path) {
            return Holds::Yes;
        }
        // A mount point cannot be replaced from inside: whoever took the mount away was the host.
        let made = |guard: &Guard| guard.let_through().may_have_made(makers(&status));
        if name.at_start == AtStart::Absent && guard.is_some_and(made) {
            self.found.extend(put_aside(&name.path));
            return Holds::Made;
        }
        if !self.hosts.contains(&name.path) {
            self.hosts.push(name.path.clone());
        }
        // The host may be replacing it once more at this very moment.
        for _ in 0..MOST_TRIES {
            let covered = cover::mount(session, &name.path, name.access);
            if session.is_covered(&name.path) {
                if holders::is_held(&session.root, &name.path) {
                    return self.no_longer(name);
                }
                // That takes its time, in which the host may have replaced it once more.
                if session.is_covered(&name.path) {
                    return Holds::Yes;
                }
                continue;
            }
            if covered == Err(Errno::NOENT) && rustix::fs::lstat(&name.path).is_err() {
                return Holds::Yes;
            }
        }
        self.no_longer(name)
    }

    fn no_longer(&mut self, name: &Name) -> Holds {
        if !self.not_held.contains(&name.path) {
            self.not_held.push(name.path.clone());
        }
        Holds::NoLonger
    }

    /// The last look, when nothing of the session is left.
    ///
    /// What is there now and was not heard of is the session's if it may have made such a thing.
    pub(super) fn finish(&mut self, guard: Option<&Guard>) -> Outcome {
        let mut outcome = Outcome {
            found: std::mem::take(&mut self.found),
            not_held: std::mem::take(&mut self.not_held),
        };
        if self.watch.is_none() {
            // No call that makes anything was ever answered: whatever is there is the host's.
            return outcome;
        }
        let mut pass = Pass::default();
        for name in self.all.iter() {
            if name.at_start != AtStart::Absent || self.hosts.contains(&name.path) {
                continue;
            }
            let made = |makes| guard.is_none_or(|guard| guard.let_through().may_have_made(makes));
            let mut seen = pass.look(&name.within, &name.path);
            if matches!(seen, Look::Unknown) {
                open_up(&name.path);
                seen = Pass::default().look(&name.within, &name.path);
            }
            match seen {
                Look::There(status) if made(makers(&status)) => {
                    // Perhaps once more: somebody was there who did not want it.
                    outcome.found.retain(|found| found.path != name.path);
                    outcome.found.extend(put_aside(&name.path));
                }
                Look::Nothing | Look::There(_) => {}
                Look::Unknown => {
                    if !outcome.not_held.contains(&name.path) {
                        outcome.not_held.push(name.path.clone());
                    }
                }
            }
        }
        outcome
    }

    /// Has news when something appeared that may concern a name.
    pub(super) fn appeared(&self) -> Option<PollFd<'_>> {
        match &self.watch {
            Some(Watch::Listening(listener)) => Some(PollFd::new(listener, PollFlags::IN)),
            Some(Watch::Looking(_)) | None => None,
        }
    }

    /// Has news when a mount was taken away: that is what a host does which replaces what is
    /// mounted over, and a listener hears of it later.
    pub(super) fn uncovered(&self) -> Option<PollFd<'_>> {
        let changes = self.session.as_ref()?.changes.as_ref()?;
        Some(PollFd::new(changes, PollFlags::PRI))
    }
}

/// The calls that can have made such a thing.
fn makers(status: &Stat) -> &'static [Makes] {
    match FileType::from_raw_mode(status.st_mode) {
        FileType::Directory => &[Makes::Directory, Makes::Moved],
        FileType::RegularFile => &[Makes::File, Makes::Moved, Makes::Other],
        _ => &[Makes::Moved, Makes::Other],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vscode_in(directory: &Path) -> Names {
        Names::new(
            vec![Name {
                path: directory.join(".vscode"),
                within: directory.to_owned(),
                access: Access::Read,
                at_start: AtStart::Absent,
            }],
            Vec::new(),
        )
    }

    #[test]
    fn whoever_is_not_told_of_mounts_listens_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let mut names = vscode_in(directory.path());
        assert_eq!(names.begin(None), Holds::Yes);
        assert!(matches!(names.watch, Some(Watch::Listening(_))));
    }

    #[test]
    fn nobody_is_calm_while_only_a_look_would_tell() {
        let directory = tempfile::tempdir().unwrap();
        let open = |path: &str| std::fs::File::open(path).unwrap().into();
        let session = |changes: Option<&str>| Session {
            root: open("/"),
            user: open("/proc/self/ns/user"),
            mount: open("/proc/self/ns/mnt"),
            changes: changes.map(open),
        };
        let mut names = vscode_in(directory.path());
        let mut guard = names.guard(&session(None)).unwrap();
        names.hold(Some(session(Some("/proc/self/mountinfo"))));
        assert_eq!(names.begin(Some(&mut guard)), Holds::Yes);
        assert_eq!(names.mood(Some(&guard)), Mood::Calm);
        // What is made inside was not asked about.
        assert_eq!(names.mood(None), Mood::Uneasy);
        // What was let through is not over before a look has found nothing after it.
        names.stir();
        assert_eq!(names.check(Some(&mut guard)), Holds::Yes);
        assert_eq!(names.mood(Some(&guard)), Mood::Uneasy);
        std::thread::sleep(SETTLE);
        assert_eq!(names.check(Some(&mut guard)), Holds::Yes);
        assert_eq!(names.mood(Some(&guard)), Mood::Calm);
        // Nobody tells when the host takes a mount away.
        names.hold(Some(session(None)));
        assert_eq!(names.mood(Some(&guard)), Mood::Uneasy);
    }
}
