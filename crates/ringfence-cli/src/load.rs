//! From the command line to a policy.

use std::path::Path;

#[cfg(target_os = "linux")]
use ringfence::git::Walking;
use ringfence::load::{Loaded, Mistake};
use ringfence::place::{Lookout, PlaceError, Project, Surroundings};
use ringfence_core::origin::Layer;
use ringfence_core::policy::{Complaint, Found, Place, Policy, Seen};
use ringfence_core::problem::Severity;
use ringfence_core::settings::Kind;
use ringfence_shell::Rules;

use crate::args::PlaceFlags;
use crate::exit::Exit;
use crate::flags::{Flags, typed};
use crate::output::{Colour, complain, remember, tell};
use crate::print::diagnostics;

/// Where ringfence was called, and everything that was written for it.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) lookout: Lookout,
    pub(crate) surroundings: Surroundings,
    pub(crate) place: Place,
    pub(crate) loaded: Loaded,
    flags: Vec<Complaint>,
}

impl Scene {
    /// Finds the project and reads all settings. What goes wrong is said here.
    pub(crate) fn set(kind: Kind, purpose: Purpose, flags: &Flags<'_>) -> Result<Self, Exit> {
        let lookout = Lookout::new();
        let (surroundings, place) = find(kind, purpose, flags.place, &lookout)?;
        let mut loaded = Loaded::read(&surroundings, &place);
        let (keys, flags) = flags.keys(&surroundings);
        loaded.add(Layer::Flag, keys);
        Ok(Self {
            lookout,
            surroundings,
            place,
            loaded,
            flags,
        })
    }

    /// The policy, made of the repositories that were there the last time if they are many; the walk
    /// goes on. What is wrong with the settings is said here.
    #[cfg(target_os = "linux")]
    pub(crate) fn presumed(&self) -> Result<(Policy, Option<Walking>), Exit> {
        if !self.flags.is_empty() {
            return self.policy().map(|policy| (policy, None));
        }
        let presumed = self.loaded.presume(&self.place, &self.lookout);
        presumed.map_err(|mistakes| said(&mistakes))
    }

    /// Every mistake that keeps the settings from being carried out, or the policy they make.
    pub(crate) fn resolve(&self) -> Result<Policy, Vec<Mistake<'_>>> {
        let resolved = self.loaded.resolve(&self.place, &self.lookout);
        if self.flags.is_empty() {
            return resolved;
        }
        let mut mistakes = resolved.err().unwrap_or_default();
        let complaints = self.flags.iter().cloned();
        mistakes.extend(complaints.map(Mistake::Elsewhere));
        Err(mistakes)
    }

    /// The policy. What is wrong with the settings is said here.
    pub(crate) fn policy(&self) -> Result<Policy, Exit> {
        self.resolve().map_err(|mistakes| said(&mistakes))
    }
}

/// Says what is wrong.
pub(crate) fn said(mistakes: &[Mistake<'_>]) -> Exit {
    let first = |mistake: &&Mistake<'_>| mistake.severity() == Severity::Error;
    if let Some(first) = mistakes.iter().find(first) {
        remember(&first.in_words());
    }
    tell(&diagnostics::render(mistakes, Colour::of_errors()));
    Exit::Usage
}

/// The rules for shell commands that hold where a command would run: here, or in `directory`. What is
/// wrong with the settings is said here.
pub(crate) fn shell_rules(kind: Kind, directory: Option<&Path>) -> Result<Rules, Exit> {
    let lookout = Lookout::new();
    let flags = PlaceFlags::default();
    // The agent says where; a place that is none leaves us where we are.
    let (surroundings, place) = if let Some(Seen::At(directory, Found::Directory)) = directory
        .filter(|directory| directory.is_absolute())
        .map(|directory| lookout.look(directory))
    {
        let mut surroundings = Surroundings::of_user(&lookout).map_err(misplaced)?;
        surroundings.current = directory;
        let place = place(&surroundings, kind, Purpose::Answer, &flags, &lookout);
        (surroundings, place.map_err(misplaced)?)
    } else {
        find(kind, Purpose::Anywhere, &flags, &lookout)?
    };
    let loaded = Loaded::read(&surroundings, &place);
    loaded.shell_rules().map_err(|mistakes| said(&mistakes))
}

/// What a place is looked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Purpose {
    /// To answer a question: where there is no project, it is answered for the current directory.
    Answer,
    /// To tell or change what is the user's own: it is so without a current directory, too.
    Anywhere,
    /// To say what would be started: as if it were, and nothing is made.
    Preview,
    /// To start a command: never with a whole home writable that nobody named.
    Start,
}

/// Where ringfence was called. What goes wrong is said here.
pub(crate) fn find(
    kind: Kind,
    purpose: Purpose,
    flags: &PlaceFlags,
    lookout: &Lookout,
) -> Result<(Surroundings, Place), Exit> {
    let found = Surroundings::of_process(lookout).and_then(|surroundings| {
        if purpose == Purpose::Start {
            surroundings.make_state();
        }
        let place = place(&surroundings, kind, purpose, flags, lookout)?;
        Ok((surroundings, place))
    });
    let found = match found {
        Err(error @ PlaceError::CurrentDirectory { .. }) if purpose == Purpose::Anywhere => {
            tell(&format!("note: {error}; this answers as it would in /\n"));
            Surroundings::of_user(lookout).and_then(|surroundings| {
                let root = Project::Named(Path::new("/"));
                let place = surroundings.place(kind, root, lookout)?;
                Ok((surroundings, place))
            })
        }
        found => found,
    };
    found.map_err(misplaced)
}

fn place(
    surroundings: &Surroundings,
    kind: Kind,
    purpose: Purpose,
    flags: &PlaceFlags,
    lookout: &Lookout,
) -> Result<Place, PlaceError> {
    let named = flags.project.as_deref();
    let named = named.map(|path| typed(path, surroundings));
    let project = match &named {
        Some(path) => Project::Named(path),
        None => Project::Nearest,
    };
    match surroundings.place(kind, project, lookout) {
        Err(error @ (PlaceError::System { .. } | PlaceError::TooWide { .. }))
            if !matches!(purpose, Purpose::Preview | Purpose::Start) =>
        {
            // Not every command that answers has `--project`.
            tell(&format!("note: {error}; this answers as if it were one\n"));
            let here = surroundings.current.as_path();
            surroundings.place(kind, Project::Named(here), lookout)
        }
        found => found,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of `map_err`")]
pub(crate) fn misplaced(error: PlaceError) -> Exit {
    complain(&error.to_string(), Some(error.help()));
    match error {
        // Nothing that was typed or written is wrong.
        PlaceError::CurrentDirectory { .. } => Exit::Refused,
        _ => Exit::Usage,
    }
}
