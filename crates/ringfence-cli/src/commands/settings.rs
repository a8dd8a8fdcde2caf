//! `ringfence settings`.

use std::fmt::Write as _;
use std::path::Path;

use ringfence::load::{Content, PROJECT_SETTINGS};
use ringfence::place::Lookout;
use ringfence_core::origin::Layer;
use ringfence_core::policy::Seen;
use ringfence_core::settings::{Kind, schema};
use ringfence_core::text::printable_path;
use serde::Serialize;

use crate::args::{PlaceFlags, SettingsCommand, Show};
use crate::exit::Exit;
use crate::flags::Flags;
use crate::load::{Purpose, Scene, find};
use crate::output::{Colour, answer, answer_json, tell};
use crate::print::plan::Detail;
use crate::print::{diagnostics, policy};

pub(super) fn run(command: &SettingsCommand) -> Result<Exit, Exit> {
    match command {
        SettingsCommand::Show(arguments) => show(arguments),
        SettingsCommand::Check(arguments) => check(arguments),
        SettingsCommand::Schema => Ok(answer_json(&schema())),
        SettingsCommand::Path { place, json } => path(place, *json),
    }
}

fn scene(arguments: &Show) -> Result<Scene, Exit> {
    Scene::set(
        arguments.kind,
        Purpose::Answer,
        &Flags {
            place: &arguments.place,
            files: Some(&arguments.files),
            network: Some(&arguments.network),
            environment: Some(&arguments.environment),
            limits: Some(&arguments.limits),
            engine: None,
        },
    )
}

fn show(arguments: &Show) -> Result<Exit, Exit> {
    let scene = scene(arguments)?;
    let resolved = scene.policy()?;
    if arguments.json {
        return Ok(answer_json(&policy::Record::new(&resolved)));
    }
    Ok(answer(&policy::render(
        &resolved,
        Detail::from_count(arguments.verbose),
    )))
}

#[derive(Serialize)]
struct Checked<'a> {
    version: u32,
    files: Vec<FileRecord<'a>>,
    problems: Vec<diagnostics::Record<'a>>,
    ignored: &'a [ringfence_core::policy::Ignored],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Serialize)]
struct FileRecord<'a> {
    layer: Layer,
    path: std::borrow::Cow<'a, str>,
    state: &'static str,
}

fn files(scene: &Scene) -> Vec<FileRecord<'_>> {
    let files = scene.loaded.files.iter();
    files
        .map(|file| FileRecord {
            layer: file.layer,
            path: file.path.to_string_lossy(),
            state: state(&file.content),
        })
        .collect()
}

fn state(content: &Content) -> &'static str {
    match content {
        Content::Missing => "missing",
        Content::Read { .. } => "read",
        Content::Unreadable(_) => "unreadable",
    }
}

fn check(arguments: &Show) -> Result<Exit, Exit> {
    let scene = scene(arguments)?;
    let resolved = scene.resolve();
    let (mistakes, ignored, notes) = match &resolved {
        Ok(policy) => (&[][..], policy.ignored(), policy.notes()),
        Err(mistakes) => (mistakes.as_slice(), &[][..], &[][..]),
    };
    let exit = if mistakes.is_empty() {
        Exit::Success
    } else {
        Exit::Usage
    };
    if arguments.json {
        let problems = mistakes.iter().filter_map(diagnostics::Record::new);
        let written = answer_json(&Checked {
            version: 1,
            files: files(&scene),
            problems: problems.collect(),
            ignored,
            notes: notes.iter().map(ToString::to_string).collect(),
        });
        return Ok(worse(exit, written));
    }
    tell(&diagnostics::render(mistakes, Colour::of_errors()));
    let mut out = String::new();
    if mistakes.is_empty() {
        for file in &scene.loaded.files {
            let path = printable_path(&file.path);
            let _ = match state(&file.content) {
                "read" => writeln!(out, "{path}: no mistakes"),
                state => writeln!(out, "{path}: {state}"),
            };
        }
        policy::ignored(&mut out, ignored);
        for note in notes {
            let _ = writeln!(out, "note: {note}");
        }
    }
    Ok(worse(exit, answer(&out)))
}

fn worse(a: Exit, b: Exit) -> Exit {
    if a == Exit::Success { b } else { a }
}

#[derive(Serialize)]
struct Paths<'a> {
    version: u32,
    files: Vec<FileRecord<'a>>,
}

fn path(flags: &PlaceFlags, json: bool) -> Result<Exit, Exit> {
    let lookout = Lookout::new();
    let (surroundings, place) = find(Kind::Tool, Purpose::Answer, flags, &lookout)?;
    let project: std::path::PathBuf = PROJECT_SETTINGS.iter().collect();
    let project = place.project.as_path().join(project);
    let user = surroundings.user_settings();
    let user = user.as_deref().map(|path| (Layer::User, path));
    let known: Vec<(Layer, &Path)> = user
        .into_iter()
        .chain([(Layer::Project, project.as_path())])
        .collect();
    let present = |path: &Path| match lookout.look(path) {
        Seen::Absent => "missing",
        Seen::At(..) | Seen::Unreadable(_) => "present",
    };
    if json {
        let files = known.iter().map(|(layer, path)| FileRecord {
            layer: *layer,
            path: path.to_string_lossy(),
            state: present(path),
        });
        return Ok(answer_json(&Paths {
            version: 1,
            files: files.collect(),
        }));
    }
    let mut out = String::new();
    for (layer, path) in known {
        let name = if layer == Layer::Project {
            "project"
        } else {
            "user"
        };
        let missing = match present(path) {
            "missing" => "  (missing)",
            _ => "",
        };
        let _ = writeln!(out, "{name:8} {}{missing}", printable_path(path));
    }
    Ok(answer(&out))
}
