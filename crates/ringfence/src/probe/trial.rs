//! A whole launch, up to the moment at which a command would start.
//!
//! Single probes can all succeed where together they do not: a limit that cannot be raised, a mount
//! that only newer kernels can clone. So the default preset is launched for real, in an empty
//! project of its own, with a program that does not exist. Looking for it is the last thing a
//! launch does, so "not found" says that every act of the plan was carried out; and nothing ran.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use ringfence_core::plan::{EngineChoice, Feature, HostFacts, compile};
use ringfence_core::policy::{Policy, resolve};
use ringfence_core::settings::{Kind, Settings};

use super::{Finding, Findings, Probed};
use crate::launch::{self, Command, LaunchError, Options};
use crate::place::{Lookout, Project, Surroundings};

/// A program that is nowhere.
const NOTHING: &str = "/nonexistent/ringfence-trial";

/// Tries each thing that an engine or a rule could need, and then all of them together.
///
/// For people who ask; a launch is its own trial.
///
/// # Examples
///
/// ```
/// use ringfence::probe::{examine, report::Report};
///
/// println!("{}", Report::new(&examine()).line);
/// ```
pub fn examine() -> Findings {
    let mut findings = super::thorough();
    if let Some(state) = launched(&findings.facts) {
        findings.findings.push(Finding {
            probed: Probed::Launch,
            state,
            detail: None,
            follows: None,
        });
    }
    findings
}

/// How a launch went; `None` where the plan has gaps, and so none would be tried.
fn launched(facts: &HostFacts) -> Option<Feature> {
    let project = match EmptyProject::new() {
        Ok(project) => project,
        Err(error) => return Some(failed(&format!("make a temporary directory: {error}"))),
    };
    let policy = match default_policy(&project.0) {
        Ok(policy) => policy,
        Err(error) => return Some(failed(&error)),
    };
    let plan = compile(&policy, facts, EngineChoice::Auto);
    if !plan.gaps().is_empty() {
        return None;
    }
    let command = Command {
        program: NOTHING.into(),
        arguments: Vec::new(),
        directory: project.0.clone(),
        environment: Vec::new(),
    };
    let started = launch::prepare(&policy, &plan, &command, Options::default())
        .and_then(launch::Prepared::spawn);
    Some(match started {
        Err(LaunchError::NotFound { .. }) => Feature::Works,
        Err(error) => failed(&in_full(&error)),
        // Dropping it ends whatever that was.
        Ok(_running) => failed(&format!("{NOTHING} exists")),
    })
}

fn default_policy(project: &Path) -> Result<Policy, String> {
    let lookout = Lookout::new();
    let surroundings = Surroundings::of_user(&lookout).map_err(|error| error.to_string())?;
    let place = surroundings
        .place(Kind::Tool, Project::Named(project), &lookout)
        .map_err(|error| error.to_string())?;
    resolve(&Settings::new(), &place, &lookout).map_err(|complaints| {
        let first = complaints.into_iter().next();
        first.map_or_else(String::new, |complaint| complaint.message)
    })
}

fn failed(why: &str) -> Feature {
    Feature::Missing {
        why: format!("no command starts: {why}"),
        fix: "`ringfence explain --plan` shows every act; please report this with `ringfence doctor --json`"
            .to_owned(),
    }
}

/// An error with all that caused it.
fn in_full(error: &LaunchError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// An empty directory that goes when it is dropped.
struct EmptyProject(PathBuf);

impl EmptyProject {
    fn new() -> std::io::Result<Self> {
        let random = RandomState::new().build_hasher().finish();
        // Canonical, since a project is named by its real path.
        let parent = std::env::temp_dir().canonicalize()?;
        let path = parent.join(format!("ringfence-trial-{random:016x}"));
        // Refuses what is already there, whatever it is.
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for EmptyProject {
    fn drop(&mut self) {
        // Nothing ran in it, so it is empty; whatever else were there is not ours to remove.
        let _ = std::fs::remove_dir(&self.0);
    }
}
