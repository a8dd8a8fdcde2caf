//! `ringfence explain`.

use std::fmt::Write as _;
use std::path::Path;

use ringfence::place::Lookout;
use ringfence_core::path::AbsPath;
use ringfence_core::plan::compile;
use ringfence_core::policy::{Policy, Seen, name_of_absent};
use serde::Serialize;

use super::host_facts;
use super::question::{Meant, Reached, meant_by, parse_host};
use crate::args::Explain;
use crate::exit::Exit;
use crate::flags::Flags;
use crate::load::{Purpose, Scene};
use crate::output::{answer, answer_json, complain};
use crate::print::grant::Asker;
use crate::print::plan::{self, Detail};
use crate::print::verdict::{Answer, Asked};

#[derive(Serialize)]
struct Record<'a> {
    version: u32,
    answers: &'a [Answer],
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<plan::Record<'a>>,
}

pub(super) fn run(arguments: &Explain) -> Result<Exit, Exit> {
    let hosts: Vec<Reached> = arguments
        .host
        .iter()
        .map(|text| parse_host(text))
        .collect::<Result<_, Exit>>()?;
    let scene = Scene::set(
        arguments.kind,
        Purpose::Answer,
        &Flags {
            place: &arguments.place,
            files: Some(&arguments.files),
            network: Some(&arguments.network),
            environment: None,
            limits: Some(&arguments.limits),
            engine: Some(&arguments.engine),
        },
    )?;
    let policy = scene.policy()?;
    let settings = scene.surroundings.user_settings();
    let asker = Asker {
        place: &scene.place,
        settings: settings.as_deref(),
    };
    let mut answers = Vec::new();
    for path in &arguments.paths {
        answers.push(about_word(&scene, &policy, asker, path)?);
    }
    for host in &hosts {
        answers.push(host.answer(&policy, asker));
    }
    for name in &arguments.env {
        answers.push(Answer::about_variable(&policy, asker, name));
    }
    let planned = if arguments.plan {
        let facts = host_facts(arguments.host_facts.as_ref())?;
        let plan = compile(&policy, &facts, arguments.engine.engine);
        Some((facts, plan))
    } else {
        None
    };
    if arguments.json {
        let plan = planned
            .as_ref()
            .map(|(_, plan)| plan::Record::new(&policy, plan, None));
        return Ok(answer_json(&Record {
            version: 1,
            answers: &answers,
            plan,
        }));
    }
    let mut out = String::new();
    for verdict in &answers {
        verdict.render(&mut out);
    }
    if let Some((facts, plan)) = &planned {
        if !out.is_empty() {
            out.push('\n');
        }
        let detail = Detail::from_count(arguments.verbose);
        out.push_str(&plan::render(&policy, facts, plan, detail));
        if let Some(weaker) = arguments.engine.weaker_than_required(plan) {
            let _ = writeln!(out, "\nNothing would start: {weaker}.");
        }
    }
    Ok(answer(&out))
}

/// A word is a path if there is such a file, or if it can be nothing else.
fn about_word(
    scene: &Scene,
    policy: &Policy,
    asker: Asker<'_>,
    given: &Path,
) -> Result<Answer, Exit> {
    let full = scene.surroundings.current.as_path().join(given);
    let word = given.to_str();
    let word = word.filter(|_| scene.lookout.look(&full) == Seen::Absent);
    match word.and_then(|word| meant_by(word, &scene.place)) {
        Some(Meant::Host(host)) => Ok(host.answer(policy, asker)),
        Some(Meant::Variable(name)) => Ok(Answer::about_variable(policy, asker, name)),
        Some(Meant::Socket(path)) => about_path(scene, policy, asker, &path, None),
        Some(Meant::Perhaps(note)) => about_path(scene, policy, asker, given, Some(note)),
        None => about_path(scene, policy, asker, given, None),
    }
}

fn about_path(
    scene: &Scene,
    policy: &Policy,
    asker: Asker<'_>,
    given: &Path,
    perhaps: Option<String>,
) -> Result<Answer, Exit> {
    let full = scene.surroundings.current.as_path().join(given);
    let look = |path: &Path| scene.lookout.look(path);
    let (path, notes) = match scene.lookout.look(&full) {
        Seen::At(path, _) => {
            // A `..` that leads where it seems to needs no words; a link does.
            let notes = match AbsPath::lexical(&full) {
                Ok(plain) if plain == path => Vec::new(),
                _ => vec![format!("it leads to {path}")],
            };
            (path, notes)
        }
        seen @ (Seen::Absent | Seen::Unreadable(_)) => {
            let path = name_of_absent(&full, &look).map_err(|error| {
                complain(&error.to_string(), None);
                Exit::Usage
            })?;
            let note = if let Seen::Unreadable(why) = seen {
                format!("it cannot be looked up ({why})")
            } else {
                "it does not exist; this would hold if it did".to_owned()
            };
            let notes = [note].into_iter().chain(perhaps).collect();
            // Lists leave out what is absent, so the policy is asked again as if it were there.
            let supposing = Lookout::new();
            supposing.suppose(&path);
            if let Ok(policy) = scene.loaded.resolve(&scene.place, &supposing) {
                let given = given.to_owned();
                let asked = Asked { given, path, notes };
                return Ok(Answer::about_path(&policy, asker, asked));
            }
            (path, notes)
        }
    };
    let given = given.to_owned();
    Ok(Answer::about_path(
        policy,
        asker,
        Asked { given, path, notes },
    ))
}
