//! A policy that this host can enforce.

use std::ffi::OsStr;
use std::sync::Arc;

use ringfence_core::plan::{Gap, HostFacts, Plan, compile};
use ringfence_core::policy::{self as resolved, Place};

use crate::command::Command;
use crate::launch::{self, Helping};
use crate::load::{Loaded, Mistake};
use crate::place::{Lookout, PlaceError, Project, Surroundings};
use crate::policy::{Policy, SettingsFiles};
use crate::probe;
#[cfg(any(target_os = "linux", target_os = "macos"))]
use crate::sessions::About;

/// Why there is no sandbox for a policy. Nothing has been started.
///
/// # Examples
///
/// ```
/// use ringfence::{Policy, Sandbox, SandboxError};
///
/// match Sandbox::new(Policy::agent("/no/such/project")) {
///     Ok(_) => println!("everything that the policy says will hold"),
///     Err(SandboxError::Gaps { gaps }) => {
///         for gap in gaps {
///             println!("{} would not hold: {}", gap.rule, gap.fix);
///         }
///     }
///     Err(error) => println!("{error}"),
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// This host cannot enforce everything that the policy says.
    #[error("this host cannot enforce the policy: {}", first(gaps))]
    Gaps {
        /// Every rule that would not hold.
        gaps: Vec<Gap>,
    },
    /// There is no such project, or no current directory.
    #[error("the project cannot be used")]
    Place(#[source] PlaceError),
    /// What the policy or a settings file says cannot be carried out.
    #[error("{}", mistakes.join("; "))]
    Policy {
        /// Everything that is wrong, one clause each.
        mistakes: Vec<String>,
    },
}

fn first(gaps: &[Gap]) -> String {
    gaps.first()
        .map(|gap| format!("{}: {}", gap.rule, gap.lost))
        .unwrap_or_default()
}

/// A policy that this host can enforce, ready to run commands.
///
/// It is made once and used for any number of commands, from any thread; a copy costs nothing.
/// Making one tries what the kernel can do, in children of their own. The calling process itself is
/// never restricted.
///
/// # Examples
///
/// ```no_run
/// use ringfence::{Policy, Sandbox};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::agent("/home/me/project"))?;
/// let output = sandbox.command("make").arg("test").output()?;
/// println!("{}", String::from_utf8_lossy(&output.stdout));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Sandbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    policy: Policy,
    surroundings: Surroundings,
    facts: HostFacts,
    /// Whether first processes are born ahead of their orders: not where the plan, as it was, would
    /// have no use for one.
    ahead: Helping,
}

/// What one command of a sandbox is held by.
#[derive(Debug)]
pub(crate) struct Walls {
    pub(crate) policy: resolved::Policy,
    pub(crate) plan: Plan,
    pub(crate) place: Place,
}

impl Sandbox {
    /// Looks up what the policy names and tries what this host can enforce.
    ///
    /// # Errors
    ///
    /// [`SandboxError`]: no sandbox is made that would hold less than its policy says, unless the
    /// policy itself puts up with gaps ([`Policy::on_gap`]).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// let sandbox = Sandbox::new(Policy::track("."))?;
    /// assert!(Sandbox::new(Policy::track("/no/such/project")).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(policy: Policy) -> Result<Self, SandboxError> {
        let lookout = Lookout::new();
        let surroundings = Surroundings::of_process(&lookout).map_err(SandboxError::Place)?;
        surroundings.make_state();
        let facts = probe::thorough().facts;
        // Every command is held against the files of its own time; this one says that it can be.
        let walls = Walls::new(&policy, &surroundings, &facts)?;
        Ok(Self(Arc::new(Inner {
            policy,
            surroundings,
            facts,
            ahead: if launch::Ahead::suits(&walls.plan) {
                Helping::WherePossible
            } else {
                Helping::Never
            },
        })))
    }

    /// The policy, as it was given.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// let sandbox = Sandbox::new(Policy::track("."))?;
    /// assert_eq!(sandbox.policy().project(), std::path::Path::new("."));
    /// # Ok(())
    /// # }
    /// ```
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// What holds the walls up here, and which rules would not hold.
    ///
    /// # Errors
    ///
    /// If something that the policy names has gone since the sandbox was made.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ringfence::{Policy, Sandbox, words::Engine};
    ///
    /// let sandbox = Sandbox::new(Policy::track("."))?;
    /// let plan = sandbox.plan()?;
    /// assert_eq!(plan.engine(), Engine::Track);
    /// assert!(plan.gaps().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn plan(&self) -> Result<Plan, SandboxError> {
        Ok(self.walls()?.plan)
    }

    /// A command to be run in this sandbox, by path or by a name that is looked up in the `PATH` it
    /// will have.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// let sandbox = Sandbox::new(Policy::track("."))?;
    /// assert!(sandbox.command("true").status()?.success());
    /// # Ok(())
    /// # }
    /// ```
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        Command::new(self.clone(), program.as_ref())
    }

    /// What is asked of a launch besides its walls: on Linux that others find the session, and remove
    /// what it leaves if this program is killed.
    pub(crate) fn options(&self, command: &launch::Command, walls: &Walls) -> launch::Options {
        options(&self.0.surroundings, command, &walls.place, &walls.plan)
    }

    /// The policy with every path absolute: for a process that is in another directory.
    #[cfg(target_os = "linux")]
    pub(crate) fn absolute_policy(&self) -> Policy {
        let current = self.0.surroundings.current.as_path();
        self.0.policy.clone().absolute(current)
    }

    /// Whether the first process of a session should be born before the session's policy is made.
    pub(crate) fn goes_ahead(&self) -> bool {
        match self.0.ahead {
            Helping::Always => true,
            Helping::Never => false,
            Helping::WherePossible => launch::Ahead::is_worth_it(),
        }
    }

    /// Says whether it should, which must make no difference. For tests, on a new sandbox.
    #[doc(hidden)]
    #[must_use]
    pub fn ahead(mut self, ahead: Helping) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.ahead = ahead;
        }
        self
    }

    /// Looks everything up once more, and plans.
    pub(crate) fn walls(&self) -> Result<Walls, SandboxError> {
        Walls::new(&self.0.policy, &self.0.surroundings, &self.0.facts)
    }
}

impl Walls {
    fn new(
        policy: &Policy,
        surroundings: &Surroundings,
        facts: &HostFacts,
    ) -> Result<Self, SandboxError> {
        let (resolved, place) = resolve(policy, surroundings)?;
        let plan = compile(&resolved, facts, policy.engine_choice());
        if !plan.may_launch() {
            let gaps = plan.gaps().to_vec();
            return Err(SandboxError::Gaps { gaps });
        }
        Ok(Self {
            policy: resolved,
            plan,
            place,
        })
    }
}

#[cfg_attr(
    not(any(target_os = "linux", target_os = "macos")),
    expect(unused_variables, reason = "only there others can find it")
)]
pub(crate) fn options(
    surroundings: &Surroundings,
    command: &launch::Command,
    place: &Place,
    plan: &Plan,
) -> launch::Options {
    launch::Options {
        #[cfg(any(target_os = "linux", target_os = "macos"))]
        registry: surroundings.sessions().zip(About::unnamed(
            command,
            place.project.as_path(),
            plan,
        )),
        ..launch::Options::default()
    }
}

/// Looks up what a policy names, now.
pub(crate) fn resolve(
    policy: &Policy,
    surroundings: &Surroundings,
) -> Result<(resolved::Policy, Place), SandboxError> {
    let lookout = Lookout::new();
    let project = Project::Named(policy.project());
    let place = surroundings
        .place(policy.kind(), project, &lookout)
        .map_err(SandboxError::Place)?;
    let mut loaded = match policy.files_of_settings {
        SettingsFiles::Ignored => Loaded::nothing(),
        SettingsFiles::Read => Loaded::read(surroundings, &place),
    };
    let (keys, complaints) = policy.keys(surroundings.current.as_path());
    loaded.add(ringfence_core::origin::Layer::Flag, keys);
    let resolved = loaded.resolve(&place, &lookout).map_err(|mistakes| {
        let mistakes = mistakes.iter().map(Mistake::in_words).collect();
        SandboxError::Policy { mistakes }
    })?;
    if !complaints.is_empty() {
        let mistakes = complaints.into_iter().map(Mistake::Elsewhere);
        let mistakes = mistakes.map(|mistake| mistake.in_words()).collect();
        return Err(SandboxError::Policy { mistakes });
    }
    Ok((resolved, place))
}
