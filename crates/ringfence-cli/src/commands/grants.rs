//! `ringfence grants`.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use ringfence::decision::{Decision, Outcome};
use ringfence::grants::threads::{Kept, ThreadId, Threads};
use ringfence_core::origin::{Layer, Origin};
use ringfence_core::permission::{Permission, Permissions};
use ringfence_core::request::{Request, Scope};
use ringfence_core::settings::{GitLevel, Kind};
use ringfence_core::text::printable_path;
use serde::Serialize;

use super::approve::{always, existing};
use super::with_causes;
use crate::args::PlaceFlags;
use crate::asking::{GrantChange, GrantsCommand};
use crate::exit::Exit;
use crate::flags::{Flags, typed};
use crate::load::{Purpose, Scene, said};
use crate::output::{answer, answer_json, complain};
use crate::print::grant::shell_word;
use crate::record::decided_alone;

pub(super) fn run(command: &GrantsCommand) -> Result<Exit, Exit> {
    match command {
        GrantsCommand::List { json } => list(*json),
        GrantsCommand::Add(change) => add(change),
        GrantsCommand::Revoke(change) => revoke(change),
    }
}

fn scene(purpose: Purpose) -> Result<Scene, Exit> {
    let place = PlaceFlags::default();
    let flags = Flags {
        place: &place,
        files: None,
        network: None,
        environment: None,
        limits: None,
        engine: None,
    };
    Scene::set(Kind::Tool, purpose, &flags)
}

/// What a change needs: a path that is relative is so to the current directory.
fn purpose(change: &GrantChange) -> Purpose {
    if change.write.iter().all(|path| path.is_absolute()) {
        Purpose::Anywhere
    } else {
        Purpose::Answer
    }
}

/// The answer, for programs.
#[derive(Serialize)]
struct Record<'a> {
    version: u32,
    grants: &'a [Row],
}

/// One grant, as programs read it.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    permission: Permission,
    scope: &'static str,
    answer: &'static str,
    origin: String,
    /// Seconds; what somebody wrote into the settings by hand has none.
    age: Option<u64>,
}

fn rows(scene: &Scene) -> Result<Vec<Row>, Exit> {
    let mut rows = Vec::new();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_secs());
    let always = always(&scene.surroundings);
    // The user's own layer alone: what the settings grant to every command.
    let user = scene.loaded.settings().layers_of(Layer::User);
    for keys in user {
        let written = &keys.agent.sandbox_permissions;
        let mut push = |permission, origin: &Origin| {
            let given = always.as_ref().and_then(|always| always.given(&permission));
            rows.push(Row {
                permission,
                scope: "always",
                answer: "allow",
                origin: origin.to_string(),
                age: given.map(|given| now.saturating_sub(given)),
            });
        };
        for host in written
            .network_hosts
            .written()
            .iter()
            .flat_map(|list| &list.value)
        {
            push(Permission::Host(host.value.clone()), &host.origin);
        }
        for path in written
            .write_paths
            .written()
            .iter()
            .flat_map(|list| &list.value)
        {
            if let Ok(known) = ringfence_core::path::AbsPath::lexical(&path.value.0) {
                push(Permission::Write(known), &path.origin);
            }
        }
        for (key, permission) in [
            (&written.allow_all_hosts, Permission::AnyHost),
            (&written.allow_git_access, Permission::Git(GitLevel::Write)),
            (&written.allow_fs_write_all, Permission::WriteAll),
        ] {
            if let Some(yes) = key.written().filter(|written| written.value) {
                push(permission, &yes.origin);
            }
        }
        if let Some(answer) = written.allow_unsandboxed.written()
            && answer.value.0 == ringfence_core::policy::Unsandboxed::Allowed
        {
            push(Permission::Unsandboxed, &answer.origin);
        }
        let level = keys.git.written();
        if let Some(level) = level.filter(|level| level.value != GitLevel::Hidden) {
            push(Permission::Git(level.value), &level.origin);
        }
    }
    let Some(threads) = scene.surroundings.threads().map(Threads::new) else {
        return Ok(rows);
    };
    let all = threads.all().map_err(|error| {
        complain(&with_causes(&error), Some(&error.help()));
        Exit::Refused
    })?;
    for thread in all {
        let each = |answer: &'static str, kept: &Kept| Row {
            permission: kept.permission.clone(),
            scope: "thread",
            answer,
            origin: format!("thread {}", thread.thread),
            age: Some(now.saturating_sub(kept.given)),
        };
        rows.extend(thread.granted.iter().map(|kept| each("allow", kept)));
        rows.extend(thread.denied.iter().map(|kept| each("deny", kept)));
    }
    Ok(rows)
}

fn list(json: bool) -> Result<Exit, Exit> {
    let scene = scene(Purpose::Anywhere)?;
    // Of a file with a mistake nobody can say what it grants.
    let mistakes = scene.loaded.users_mistakes();
    if !mistakes.is_empty() {
        return Err(said(&mistakes));
    }
    let rows = rows(&scene)?;
    if json {
        return Ok(answer_json(&Record {
            version: 1,
            grants: &rows,
        }));
    }
    let mut out = String::new();
    for row in &rows {
        let age = row
            .age
            .map(|age| format!(", {}", since(age)))
            .unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{}: {} ({}{age})",
            row.answer, row.permission, row.origin
        );
    }
    if rows.is_empty() {
        out.push_str("nothing is granted\n");
    }
    Ok(answer(&out))
}

fn since(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} seconds ago"),
        120..=7199 => format!("{} minutes ago", seconds / 60),
        7200..=172_799 => format!("{} hours ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

fn add(change: &GrantChange) -> Result<Exit, Exit> {
    let scene = scene(purpose(change))?;
    let mut permissions = named(change);
    for path in &change.write {
        let path = existing(&typed(path, &scene.surroundings), &scene)?;
        permissions.insert(Permission::Write(path));
    }
    let kept = if let Some(id) = &change.thread {
        let granted = threads(&scene)?.grant(id, &permissions);
        granted.map_err(|error| (with_causes(&error), None))
    } else {
        let always = always(&scene.surroundings).ok_or_else(homeless)?;
        let granted = always.grant(&permissions);
        granted.map_err(|error| (with_causes(&error), error.help()))
    };
    kept.map_err(|(why, help)| {
        complain(&why, help);
        Exit::Refused
    })?;
    let said = format!("granted: {permissions}{}\n", kept_in(&scene, change)?);
    decided(&scene, Outcome::Granted, permissions, change);
    Ok(answer(&said))
}

/// For how long what is changed holds, and in which file it is written.
fn kept_in(scene: &Scene, change: &GrantChange) -> Result<String, Exit> {
    let (scope, path) = if let Some(id) = &change.thread {
        (format!("thread {id}"), threads(scene)?.path(id))
    } else {
        let always = always(&scene.surroundings).ok_or_else(homeless)?;
        ("always".to_owned(), always.path().to_owned())
    };
    Ok(format!(" ({scope}, in {})", printable_path(&path)))
}

fn revoke(change: &GrantChange) -> Result<Exit, Exit> {
    let scene = scene(purpose(change))?;
    let mut permissions: Vec<Permission> = named(change).iter().cloned().collect();
    for path in &change.write {
        // It may be gone, or a link by now: the name that was granted is what counts.
        let path = typed(path, &scene.surroundings);
        let path = ringfence_core::path::AbsPath::lexical(path).map_err(|error| {
            complain(&error.to_string(), None);
            Exit::Usage
        })?;
        permissions.push(Permission::Write(path));
    }
    let mut done = Exit::Success;
    let kept = kept_in(&scene, change)?;
    let mut out = String::new();
    for permission in permissions {
        let revoked = if let Some(id) = &change.thread {
            let revoked = threads(&scene)?.revoke(id, &permission);
            revoked.map_err(|error| (with_causes(&error), None))
        } else {
            let always = always(&scene.surroundings).ok_or_else(homeless)?;
            let revoked = always.revoke(&permission);
            revoked.map_err(|error| (with_causes(&error), error.help()))
        };
        match revoked {
            Ok(true) => {
                let _ = writeln!(out, "taken back: {permission}{kept}");
                let permissions = [permission].into_iter().collect();
                decided(&scene, Outcome::Taken, permissions, change);
            }
            Ok(false) => {
                complain(&format!("this was not granted: {permission}"), None);
                done = Exit::No;
            }
            Err((why, help)) => {
                answer(&out);
                complain(&why, help);
                return Err(Exit::Refused);
            }
        }
    }
    let said = answer(&out);
    Ok(if done == Exit::Success { said } else { done })
}

/// Leaves a trace of what was changed by hand.
fn decided(scene: &Scene, outcome: Outcome, permissions: Permissions, change: &GrantChange) {
    let request = Request {
        permissions,
        reason: None,
    };
    let mut decision = Decision::new(&request, outcome, "the command line");
    decision.scope = Some(match change.thread {
        Some(_) => Scope::Thread,
        None => Scope::Always,
    });
    let decision = decision.in_thread(change.thread.as_ref());
    decided_alone(scene.surroundings.state.as_deref(), "grants", decision);
}

/// Everything but paths, which have to be looked up.
fn named(change: &GrantChange) -> Permissions {
    let mut permissions = Permissions::new();
    for host in &change.host {
        permissions.insert(Permission::Host(host.clone()));
    }
    for (wanted, permission) in [
        (change.all_hosts, Permission::AnyHost),
        (change.write_all, Permission::WriteAll),
        (change.unsandboxed, Permission::Unsandboxed),
        (change.fallback, Permission::Fallback),
    ] {
        if wanted {
            permissions.insert(permission);
        }
    }
    if let Some(level) = change.git {
        permissions.insert(Permission::Git(level));
    }
    permissions
}

fn threads(scene: &Scene) -> Result<Threads, Exit> {
    scene
        .surroundings
        .threads()
        .map(Threads::new)
        .ok_or_else(homeless)
}

fn homeless() -> Exit {
    complain("there is no place to keep grants: HOME is not set", None);
    Exit::Refused
}

/// The flags of `run` that let one command do this, if there are any.
pub(super) fn flags_to_paste(permissions: &Permissions) -> Option<String> {
    if permissions.contains(&Permission::Unsandboxed) {
        return Some("--preset track".to_owned());
    }
    let any_host = permissions.contains(&Permission::AnyHost);
    let mut flags = Vec::new();
    for permission in permissions {
        flags.push(match permission {
            Permission::AnyHost => "--net all".to_owned(),
            Permission::Git(level) => format!("--git {level}"),
            Permission::Host(_) if any_host => continue,
            Permission::Host(pattern) => {
                format!("--allow-host {}", shell_word(pattern.to_string().as_ref()))
            }
            Permission::Write(path) => {
                format!("--write {}", shell_word(path.as_path().as_os_str()))
            }
            Permission::Fallback | Permission::Unsandboxed | Permission::WriteAll => return None,
        });
    }
    Some(flags.join(" "))
}

/// The command that would grant this.
pub(super) fn command_to_paste(permissions: &Permissions, thread: Option<&ThreadId>) -> String {
    let mut out = String::from("ringfence grants add");
    for permission in permissions {
        let _ = match permission {
            Permission::AnyHost => write!(out, " --all-hosts"),
            Permission::Git(level) => write!(out, " --git {level}"),
            Permission::Host(pattern) => {
                write!(out, " --host {}", shell_word(pattern.to_string().as_ref()))
            }
            Permission::Unsandboxed => write!(out, " --unsandboxed"),
            Permission::Write(path) => {
                write!(out, " --write {}", shell_word(path.as_path().as_os_str()))
            }
            Permission::WriteAll => write!(out, " --write-all"),
            Permission::Fallback => write!(out, " --fallback"),
        };
    }
    if let Some(thread) = thread {
        let _ = write!(out, " --thread {}", shell_word(thread.to_string().as_ref()));
    }
    out
}
