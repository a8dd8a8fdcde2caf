//! A policy in words: every value, and where it was written.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use ringfence_core::origin::{BuiltIn, Located, Origin};
use ringfence_core::path::AbsPath;
use ringfence_core::policy::{
    Access, EnvPattern, FileRule, Found, Ignored, Limits, Network, Passing, Policy, SocketGrant,
    Unsandboxed,
};
use ringfence_core::settings::{GitLevel, Kind, Limit, OnGap, Preset, ShellRule, Tmp};
use ringfence_core::text::printable;
use serde::Serialize;

use super::plan::Detail;

/// Everything that holds; what does not exist here in one line for each list, unless all is wanted.
pub(crate) fn render(policy: &Policy, detail: Detail) -> String {
    let mut out = String::new();
    let mut general = Table::default();
    general.row(&"project", policy.project(), &"");
    general.row(&"kind", &policy.kind(), &"");
    general.located("preset", policy.preset());
    general.located("git", policy.git());
    general.located("tmp", policy.tmp());
    general.located("on_gap", policy.on_gap());
    let unsandboxed = policy.unsandboxed();
    let answer = match unsandboxed.value {
        Unsandboxed::Never => "never",
        Unsandboxed::Ask => "ask",
        Unsandboxed::Allowed => "allowed",
    };
    general.row(&"unsandboxed", &answer, &unsandboxed.origin);
    general.write(&mut out);
    for note in policy.notes() {
        let _ = writeln!(out, "  note: {note}");
    }

    out.push_str("\nfiles (the most specific rule wins)\n");
    let mut files = Table::default();
    let rules = policy.files();
    files.row(
        &"everything else",
        &rules.default_access(),
        rules.default_origin(),
    );
    let (mut secrets, mut protected) = (0, 0);
    for rule in rules.rules() {
        // What this machine does not have would bury what it has.
        let count = match rule.origin {
            Origin::BuiltIn(BuiltIn::Secrets) => Some(&mut secrets),
            Origin::BuiltIn(BuiltIn::Protected) => Some(&mut protected),
            _ => None,
        };
        if let (Some(count), Found::Absent, Detail::Acts) = (count, rule.found, detail) {
            *count += 1;
            continue;
        }
        let absent = match rule.found {
            Found::Absent => " (does not exist)",
            Found::Directory | Found::File | Found::Other => "",
        };
        files.row(
            &format_args!("{}{absent}", rule.path),
            &rule.access,
            &rule.origin,
        );
    }
    files.write(&mut out);
    if secrets > 0 {
        let _ = writeln!(
            out,
            "  and {secrets} paths of the built-in secrets list that do not exist here: hidden"
        );
    }
    if protected > 0 {
        let _ = writeln!(
            out,
            "  and {protected} names of the built-in list of files that run later, which do not exist here: not to be made (-v lists them)"
        );
    }

    out.push_str("\nnetwork\n");
    network(policy).write(&mut out);
    out.push_str("\nenvironment\n");
    environment(&mut out, policy);
    out.push_str("\nlimits\n");
    limits(policy.limits()).write(&mut out);
    if !policy.shell_rules().is_empty() {
        out.push_str("\nshell rules (the strictest match wins)\n");
        let mut rules = Table::default();
        for rule in policy.shell_rules() {
            rules.row(&rule.value.action, &rule.value, &rule.origin);
        }
        rules.write(&mut out);
    }
    ignored(&mut out, policy.ignored());
    out
}

fn network(policy: &Policy) -> Table {
    let mut table = Table::default();
    let network = policy.network();
    table.row(&"mode", &network.mode(), network.mode_origin());
    for host in network.hosts() {
        table.located("host", host);
    }
    for port in network.loopback_in() {
        table.located("loopback_in", port);
    }
    for port in network.loopback_out() {
        table.located("loopback_out", port);
    }
    for socket in policy.sockets() {
        table.row(&"unix socket", &socket.path, &socket.origin);
    }
    table
}

fn environment(out: &mut String, policy: &Policy) {
    let environment = policy.environment();
    match environment.passing() {
        Passing::Everything => out.push_str("  everything passes\n"),
        Passing::Listed(patterns) => {
            // Most come from one list; its name once is enough.
            let mut by_origin: Vec<(String, Vec<String>)> = Vec::new();
            for pattern in patterns {
                let origin = pattern.origin.to_string();
                let name = pattern.value.to_string();
                match by_origin.iter_mut().find(|(known, _)| *known == origin) {
                    Some((_, names)) => names.push(name),
                    None => by_origin.push((origin, vec![name])),
                }
            }
            if by_origin.is_empty() {
                out.push_str("  nothing passes\n");
            }
            for (origin, names) in by_origin {
                let _ = writeln!(out, "  pass ({origin})");
                wrapped(out, &names);
            }
        }
    }
    let mut set = Table::default();
    for (name, value) in environment.set() {
        set.row(
            &format_args!("set {}", printable(name)),
            &printable(&value.value),
            &value.origin,
        );
    }
    set.write(out);
}

/// Words in lines of readable length.
fn wrapped(out: &mut String, words: &[String]) {
    const WIDTH: usize = 88;
    let mut column = 0;
    for word in words {
        if column > 0 && column + word.len() > WIDTH {
            out.push('\n');
            column = 0;
        }
        if column == 0 {
            out.push_str("    ");
            column = 4;
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out.push('\n');
}

fn limits(limits: &Limits) -> Table {
    let mut table = Table::default();
    let seconds = |limit: &Located<Limit>| match limit.value {
        Limit::At(bound) => format!("{bound} s"),
        Limit::Unlimited => "none".to_owned(),
    };
    let bytes = |limit: &Located<Limit>| match limit.value {
        Limit::At(bound) => size(bound),
        Limit::Unlimited => "none".to_owned(),
    };
    table.row(&"wall", &seconds(&limits.wall), &limits.wall.origin);
    table.row(&"cpu", &seconds(&limits.cpu), &limits.cpu.origin);
    table.located("processes", &limits.processes);
    table.row(&"memory", &bytes(&limits.memory), &limits.memory.origin);
    table.located("files", &limits.files);
    table.row(
        &"file_size",
        &bytes(&limits.file_size),
        &limits.file_size.origin,
    );
    table.row(
        &"tmp_size",
        &bytes(&limits.tmp_size),
        &limits.tmp_size.origin,
    );
    table
}

/// Bytes as they would be written in settings.
fn size(bytes: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >> shift > 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    format!("{bytes}B")
}

/// What the project's file asked for and did not get.
pub(crate) fn ignored(out: &mut String, ignored: &[Ignored]) {
    if ignored.is_empty() {
        return;
    }
    out.push_str("\nignored: a project's file can only narrow, and it asked for\n");
    let mut table = Table::default();
    for entry in ignored {
        table.row(&entry.what, &"", &entry.origin);
    }
    table.write(out);
}

/// Rows of a name, a value and an origin.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<[String; 3]>,
}

impl Table {
    fn row(&mut self, name: &dyn Display, value: &dyn Display, origin: &dyn Display) {
        self.rows
            .push([name.to_string(), value.to_string(), origin.to_string()]);
    }

    fn located(&mut self, name: &str, located: &Located<impl Display>) {
        self.row(&name, &located.value, &located.origin);
    }

    fn write(&self, out: &mut String) {
        let width = |column: usize| {
            let widths = self.rows.iter().map(|row| row[column].chars().count());
            // One long path must not push everything else off the screen.
            widths.filter(|width| *width <= 60).max().unwrap_or(0)
        };
        let (names, values) = (width(0), width(1));
        for [name, value, origin] in &self.rows {
            let line = format!("  {name:names$}  {value:values$}  {origin}");
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

/// A policy as programs read it.
#[derive(Debug, Serialize)]
pub(crate) struct Record<'a> {
    version: u32,
    project: &'a AbsPath,
    kind: Kind,
    preset: &'a Located<Preset>,
    git: &'a Located<GitLevel>,
    tmp: &'a Located<Tmp>,
    on_gap: &'a Located<OnGap>,
    unsandboxed: &'a Located<Unsandboxed>,
    files: Files<'a>,
    network: &'a Network,
    unix_sockets: &'a [SocketGrant],
    environment: Environment<'a>,
    limits: &'a Limits,
    shell_rules: &'a [Located<ShellRule>],
    notes: Vec<String>,
    ignored: &'a [Ignored],
}

#[derive(Debug, Serialize)]
struct Files<'a> {
    default: DefaultAccess<'a>,
    rules: &'a [FileRule],
}

#[derive(Debug, Serialize)]
struct DefaultAccess<'a> {
    access: Access,
    origin: &'a Origin,
}

#[derive(Debug, Serialize)]
struct Environment<'a> {
    /// `null`: everything.
    pass: Option<&'a [Located<EnvPattern>]>,
    set: &'a BTreeMap<String, Located<String>>,
}

impl<'a> Record<'a> {
    /// The same policy as data.
    pub(crate) fn new(policy: &'a Policy) -> Self {
        let files = policy.files();
        let environment = policy.environment();
        Self {
            version: 1,
            project: policy.project(),
            kind: policy.kind(),
            preset: policy.preset(),
            git: policy.git(),
            tmp: policy.tmp(),
            on_gap: policy.on_gap(),
            unsandboxed: policy.unsandboxed(),
            files: Files {
                default: DefaultAccess {
                    access: files.default_access(),
                    origin: files.default_origin(),
                },
                rules: files.rules(),
            },
            network: policy.network(),
            unix_sockets: policy.sockets(),
            environment: Environment {
                pass: match environment.passing() {
                    Passing::Everything => None,
                    Passing::Listed(patterns) => Some(patterns),
                },
                set: environment.set(),
            },
            limits: policy.limits(),
            shell_rules: policy.shell_rules(),
            notes: policy.notes().iter().map(ToString::to_string).collect(),
            ignored: policy.ignored(),
        }
    }
}
