//! What a command that failed was not given, as far as there is evidence.
//!
//! The kernel tells a program that there is no such file, or that a file system is read-only, and tells
//! ringfence nothing. Naming everything that a policy keeps away after every failure would be noise that
//! nobody reads: most failures are failing tests. So only that is named which the session certainly ran
//! into, or which its own words name: files that the supervisor saw being made where nothing may be
//! written, connections that it made in the command's place and that led nowhere, paths in the command
//! line (also in the text of a `sh -c`) that the policy hides or does not let be written, and the
//! repository, if git is run and cannot see it. What a script does further down is not seen.

use std::path::{Path, PathBuf};

use ringfence::Denied;
use ringfence::launch::{Cause, Report};
use ringfence::place::Lookout;
use ringfence_core::origin::{BuiltIn, Origin};
use ringfence_core::path::AbsPath;
use ringfence_core::policy::{
    Access, Content, EnvVerdict, Found, Policy, Seen, lists, name_of_absent,
};
use ringfence_core::text::{printable, printable_path};
use ringfence_shell::{Code, Command, HoleKind, Ir, Word, write_targets};

use super::grant::{Asker, Grant, grant_path, is_closed_to_us, shell_word};

/// Things that are named.
const MOST_NAMED: usize = 3;
/// Variables that are named.
const MOST_VARIABLES: usize = 10;
/// Where no flag is named: nobody is to paste one.
const REFUSED: &str = "refused, see ringfence explain";
/// What starts with a login besides the start-up files of shells.
const AUTOSTART: [&str; 8] = [
    "~/.bash_logout",
    "~/.local/share/systemd",
    "~/.pam_environment",
    "~/.xinitrc",
    "~/.xprofile",
    "~/.xsession",
    "~/.xsessionrc",
    "~/Library/LaunchAgents",
];
/// From here on a shell speaks of a signal, which mostly somebody sent.
const SIGNAL: u8 = 128;

/// What a session was about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) asker: Asker<'a>,
    /// The command as one line of bash.
    pub(crate) text: &'a str,
    /// Where it started.
    pub(crate) directory: &'a AbsPath,
}

/// One line for a command that failed, if there is anything to say.
pub(crate) fn line(told: Told<'_>, report: &Report) -> Option<String> {
    if !failed(told.policy, report) {
        return None;
    }
    let mut list = List::default();
    told.of_words(report, &mut list);
    for denial in &report.denials {
        match denial.what {
            Denied::File => told.of_write(Path::new(&denial.target), report, &mut list),
            // Which name it was is not known: only that somebody was to be asked for one.
            Denied::Host if denial.fix.ends_with(" HOST") => {
                list.add("the network".to_owned(), denial.fix.clone());
            }
            Denied::Host => {
                let target = printable(&denial.target);
                let plain = target == denial.target;
                let fix = if plain { &*denial.fix } else { REFUSED };
                list.add(target, printable(fix));
            }
            _ => {}
        }
    }
    list.into_line()
}

/// The variables that did not pass, for whoever wants to know.
pub(crate) fn variables(policy: &Policy, report: &Report) -> Option<String> {
    if !failed(policy, report) {
        return None;
    }
    let removed = |name: &String| {
        let verdict = policy.environment().verdict(name);
        matches!(
            verdict,
            EnvVerdict::Removed(_) | EnvVerdict::LeadsToSocket { .. }
        )
    };
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<String> = names.filter(removed).collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(MOST_VARIABLES);
    let shown = names.iter().take(MOST_VARIABLES);
    let shown: Vec<String> = shown.map(|name| printable(name)).collect();
    let more = and_more(more);
    let line = format!(
        "ringfence: variables that did not pass: {}{more} (--env NAME)\n",
        shown.join(", ")
    );
    (!shown.is_empty()).then_some(line)
}

/// Whether the command itself said that something went wrong.
fn failed(policy: &Policy, report: &Report) -> bool {
    let own = matches!(report.cause, Cause::Exited { status } if (1..=SIGNAL).contains(&status));
    own && !policy.only_tracks()
}

impl Told<'_> {
    /// What the command's own words name.
    fn of_words(self, report: &Report, list: &mut List) {
        let ir = Ir::from_bash(self.text);
        let moves = ir.has(Code::Cd);
        // Where rules do not hold it may have seen what they hide.
        let holds = report.gaps.is_empty();
        let mut commands = ir.commands.iter();
        if let Some(git) = commands.find(|command| command.name() == Some("git")) {
            let sent = git.words.iter().any(|word| word.text == "-C");
            if holds {
                self.of_repository(moves || sent, list);
            }
        }
        let full = |path: &Path| {
            let known = path.is_absolute() || !moves;
            known.then(|| self.directory.as_path().join(path))
        };
        for command in &ir.commands {
            let paths = words_of(command).filter_map(|word| self.path(word));
            for path in paths.filter_map(|path| full(&path)).filter(|_| holds) {
                self.of_read(&path, list);
            }
        }
        for target in write_targets(&ir) {
            let path = target.path.map(PathBuf::from);
            // What begins with the home is known here, too.
            let path = path.or_else(|| {
                let mut words = ir.commands.iter().flat_map(words_of);
                self.path(words.find(|word| word.span == target.span)?)
            });
            if let Some(path) = path.and_then(|path| full(&path)) {
                self.of_write(&path, report, list);
            }
        }
    }

    fn path(self, word: &Word) -> Option<PathBuf> {
        let text = match word.holes.as_slice() {
            [] => PathBuf::from(&word.text),
            [hole] if hole.kind == HoleKind::Tilde && hole.at == 0 => {
                let home = self.asker.place.home.as_ref()?;
                home.as_path().join(word.text.strip_prefix('/')?)
            }
            _ => return None,
        };
        (!text.as_os_str().is_empty()).then_some(text)
    }

    /// The repository that git would find where it starts; any, where it is sent elsewhere.
    fn of_repository(self, elsewhere: bool, list: &mut List) {
        let rules = self.policy.files().rules().iter();
        let hidden = rules.filter(|rule| {
            rule.origin == Origin::BuiltIn(BuiltIn::Git)
                && rule.access == Access::None
                && rule.found != Found::Absent
        });
        let around = |path: &AbsPath| {
            let tree = path.parent();
            tree.is_some_and(|tree| tree.covers(self.directory))
        };
        let reached = hidden.filter(|rule| elsewhere || around(&rule.path));
        // Of those around a directory the longest is the nearest.
        let nearest = reached.max_by_key(|rule| {
            let length = rule.path.as_path().as_os_str().len();
            (around(&rule.path), length)
        });
        if let Some(rule) = nearest
            && let Some(grant) = grant_path(self.policy, self.asker, &rule.path)
        {
            list.add(self.shown(&rule.path), pasted(&rule.path, grant.flag));
        }
    }

    /// A path that is there, and that the command does not see.
    fn of_read(self, path: &Path, list: &mut List) {
        let Seen::At(path, _) = Lookout::new().look(path) else {
            return;
        };
        let verdict = self.policy.files().access(&path);
        if verdict.access == Access::None
            && let Some(grant) = self.grant(&path)
        {
            let flag = pasted(&path, grant.flag);
            list.add(format!("reading {}", self.shown(&path)), flag);
        }
    }

    /// A path that would have been written.
    fn of_write(self, path: &Path, report: &Report, list: &mut List) {
        let lookout = Lookout::new();
        let path = match lookout.look(path) {
            Seen::At(path, _) => path,
            Seen::Absent => match name_of_absent(path, &|path: &Path| lookout.look(path)) {
                Ok(path) => path,
                Err(_) => return,
            },
            Seen::Unreadable(_) => return,
        };
        let verdict = self.policy.files().access(&path);
        // Of what was refused by name, something else was said already.
        let said = report.tried.iter().any(|tried| tried == path.as_path());
        if verdict.access == Access::Write || verdict.content() != Content::Host || said {
            return;
        }
        if let Some(flag) = self.flag_to_write(&path) {
            list.add(
                format!("writing {}", self.shown(&path)),
                pasted(&path, flag),
            );
        }
    }

    /// The flag that lets a path be written; where nothing is there, one for what it would be made in.
    fn flag_to_write(self, path: &AbsPath) -> Option<String> {
        let there = |path: &AbsPath| path.as_path().symlink_metadata().is_ok();
        let grant = self.grant(path)?;
        if self.runs_later(path) {
            let path = shell_word(path.as_path().as_os_str());
            return Some(format!("{REFUSED} {path}"));
        }
        if there(path) || !grant.needs_the_path() {
            return Some(grant.flag);
        }
        let mut directory = path.parent()?;
        while !there(&directory) {
            directory = directory.parent()?;
        }
        let around = self.grant(&directory)?;
        // Nobody should be led to give away a home for the sake of one file.
        let home = self.asker.place.home.as_ref();
        let mut own = home.into_iter().chain([self.policy.project()]);
        let wide = own.any(|own| directory.covers(own))
            || directory.as_path().iter().count() < 3
            || self.is_of_programs(&directory);
        Some(if wide {
            format!("{} once it is there", grant.flag)
        } else {
            around.flag
        })
    }

    /// Whether it runs at the next login. A command that wants to write it is one to look at first.
    fn runs_later(self, path: &AbsPath) -> bool {
        let Some(below) = self.below_home(path) else {
            return false;
        };
        let mut names = lists::DOTFILES.iter().chain(&AUTOSTART);
        names.any(|name| below.starts_with(name.trim_start_matches("~/")))
    }

    /// Whether it is a directory of a home where programs and what they obey lie, of many at once.
    fn is_of_programs(self, directory: &AbsPath) -> bool {
        let below = self.below_home(directory);
        let first = below.and_then(|below| below.iter().next());
        first.is_some_and(|first| {
            first == "bin" || first == "Library" || first.as_encoded_bytes().starts_with(b".")
        })
    }

    fn below_home(self, path: &AbsPath) -> Option<&Path> {
        let home = self.asker.place.home.as_ref()?;
        path.as_path().strip_prefix(home).ok()
    }

    /// What helps, unless the host itself would refuse.
    fn grant(self, path: &AbsPath) -> Option<Grant> {
        let grant = grant_path(self.policy, self.asker, path)?;
        (!is_closed_to_us(path, grant.to)).then_some(grant)
    }

    /// As it is called in the project, if it is there; quoted, since a name can read like words of ours.
    fn shown(self, path: &AbsPath) -> String {
        let below = path.as_path().strip_prefix(self.directory.as_path());
        match below {
            Ok(below) if !below.as_os_str().is_empty() => shell_word(below.as_os_str()),
            _ => shell_word(path.as_path().as_os_str()),
        }
    }
}

/// A flag for a path that is what it looks like. One with something hidden in it gets none.
fn pasted(path: &AbsPath, flag: String) -> String {
    let raw = path.as_path().as_os_str();
    if raw.to_str() == Some(&*printable_path(path.as_path())) {
        flag
    } else {
        REFUSED.to_owned()
    }
}

/// Words of a command that could be paths.
fn words_of(command: &Command) -> impl Iterator<Item = &Word> {
    let redirected = command.redirections.iter().map(|target| &target.target);
    command.words.iter().skip(1).chain(redirected)
}

/// What was not given, and the flag that gives it, each flag once.
#[derive(Debug, Default)]
struct List(Vec<(String, String)>);

impl List {
    fn add(&mut self, what: String, flag: String) {
        if !self.0.iter().any(|(_, known)| *known == flag) {
            self.0.push((what, flag));
        }
    }

    fn into_line(self) -> Option<String> {
        let more = and_more(self.0.len().saturating_sub(MOST_NAMED));
        let shown = self.0.iter().take(MOST_NAMED);
        let shown: Vec<String> = shown
            .map(|(what, flag)| format!("{what} ({flag})"))
            .collect();
        let line = format!("ringfence: not given: {}{more}\n", shown.join(", "));
        (!shown.is_empty()).then_some(line)
    }
}

fn and_more(count: usize) -> String {
    match count {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}
