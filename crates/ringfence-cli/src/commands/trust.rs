//! `ringfence trust`.

use std::fmt::Write as _;

use ringfence::decision::Decision;
use ringfence::grants::trust::Trust;
use ringfence::load::{Content, project_text};
use ringfence::place::{Lookout, Surroundings};
use ringfence_core::origin::Layer;
use ringfence_core::settings::{Kind, ProjectTrust};
use ringfence_core::text::{printable, printable_path};

use super::with_causes;
use crate::args::PlaceFlags;
use crate::asking;
use crate::exit::Exit;
use crate::flags::Flags;
use crate::load::{Purpose, Scene, misplaced, said};
use crate::output::{answer, complain};
use crate::record::decided_alone;

pub(super) fn run(arguments: &asking::Trust) -> Result<Exit, Exit> {
    if arguments.list {
        // Of all projects, so it needs none.
        let surroundings = Surroundings::of_user(&Lookout::new());
        let surroundings = surroundings.map_err(misplaced)?;
        return list(&trust(&surroundings)?);
    }
    let place = PlaceFlags {
        project: arguments.path.clone(),
        ..PlaceFlags::default()
    };
    let flags = Flags {
        place: &place,
        files: None,
        network: None,
        environment: None,
        limits: None,
        engine: None,
    };
    let scene = Scene::set(Kind::Tool, Purpose::Answer, &flags)?;
    let trust = trust(&scene.surroundings)?;
    let project = &scene.place.project;
    if arguments.revoke {
        let known = trust
            .revoke(project.as_path())
            .map_err(|error| refused(&error))?;
        if !known {
            complain(&format!("{project} was not trusted"), None);
            return Ok(Exit::No);
        }
        decided(&scene, "taken back");
        return Ok(answer(&format!("{project} may only narrow from now on\n")));
    }
    let file = scene
        .loaded
        .files
        .iter()
        .find(|file| file.layer == Layer::Project);
    let text = file.and_then(|file| match &file.content {
        Content::Read { source, .. } => Some(source.text().to_owned()),
        Content::Missing | Content::Unreadable(_) => None,
    });
    let Some(text) = text else {
        complain(
            &format!("{project} has no settings of its own that can be read"),
            None,
        );
        return Ok(Exit::No);
    };
    let widened = widened(&scene)?;
    let mut out = format!("{project}/.ringfence/settings.json\n");
    for line in &widened {
        let _ = writeln!(out, "  + {line}");
    }
    if widened.is_empty() {
        out.push_str("  widens nothing\n");
    }
    let pins = trust.pins().map_err(|error| refused(&error))?;
    let pin = project.as_path().to_str().and_then(|name| pins.get(name));
    if pin.is_some_and(|pin| pin.covers(&text)) {
        out.push_str("this content is trusted; there is nothing to do until it changes\n");
        return Ok(answer(&out));
    }
    if !arguments.yes {
        if pin.is_some() {
            out.push_str("the file has changed since it was trusted, and so it only narrows\n");
        }
        out.push_str("nothing was changed; `ringfence trust --yes` trusts exactly this content\n");
        return Ok(answer(&out));
    }
    let pinned = trust.pin(project, &text).map_err(|error| refused(&error))?;
    if !pinned {
        complain(
            "the project's path is not text, and so cannot be remembered",
            None,
        );
        return Err(Exit::Refused);
    }
    decided(&scene, "granted");
    out.push_str("trusted, until the file changes\n");
    Ok(answer(&out))
}

fn trust(surroundings: &Surroundings) -> Result<Trust, Exit> {
    let state = surroundings.state.as_ref().ok_or_else(|| {
        complain("there is no place to remember trust: HOME is not set", None);
        Exit::Refused
    })?;
    Ok(Trust::new(state))
}

/// Leaves a trace of what was changed by hand.
fn decided(scene: &Scene, answer: &str) {
    let request = format!("trust the settings of {}", scene.place.project);
    let decision = Decision::of_command(&request, answer, "the command line");
    decided_alone(scene.surroundings.state.as_deref(), "trust", decision);
}

/// What the project's file would add to a policy without it.
fn widened(scene: &Scene) -> Result<Vec<String>, Exit> {
    let narrow = scene.loaded.with_trust(ProjectTrust::NarrowsOnly);
    let policy = narrow
        .resolve(&scene.place, &scene.lookout)
        .map_err(|mistakes| said(&mistakes))?;
    let ignored = policy.ignored().iter();
    Ok(ignored
        .map(|entry| format!("{} ({})", printable(&entry.what), entry.origin))
        .collect())
}

fn list(trust: &Trust) -> Result<Exit, Exit> {
    let pins = trust.pins().map_err(|error| refused(&error))?;
    let mut out = String::new();
    for (project, pin) in &pins {
        let state = match project_text(project.as_ref()) {
            Ok(Some(text)) if pin.covers(&text) => "trusted".to_owned(),
            Ok(Some(_)) => "changed since, only narrows".to_owned(),
            Ok(None) => "no settings there now".to_owned(),
            Err(error) => format!("cannot be read: {error}"),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{} sha256 {} ({state})",
            printable_path(project.as_ref()),
            printable(&pin.sha256)
        );
    }
    if pins.is_empty() {
        out.push_str("no project is trusted\n");
    }
    Ok(answer(&out))
}

fn refused(error: &ringfence::store::StoreError) -> Exit {
    complain(&with_causes(error), Some(&error.help()));
    Exit::Refused
}
