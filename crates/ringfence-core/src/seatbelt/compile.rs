//! Policy –compile→ profile.

use std::collections::BTreeSet;

use super::{
    Action, DEVICES, Filter, PathValue, Profile, Rule, SERVICES, SessionPath, Target, pattern,
    spellings,
};
use crate::path::AbsPath;
use crate::policy::{Access, Content, FileRule, Found, Policy};
use crate::settings::NetworkMode;

const READ: &[&str] = &["file-read*"];
const METADATA: &[&str] = &["file-read-metadata"];
const WRITE: &[&str] = &["file-write*"];
const RUN: &[&str] = &["process-exec*", "file-map-executable"];
const READ_WRITE: &[&str] = &["file-read*", "file-write*"];
const UNLINK: &[&str] = &["file-write-unlink"];

/// The profile of a session that is only tracked: everything is allowed but one point that nobody
/// has a use for.
pub fn tracking() -> Profile {
    let mut out = Draft::default();
    out.fingerprint();
    Profile {
        default: Action::Allow,
        rules: out.rules,
    }
}

/// The profile that holds what the policy says of files, sockets and the network.
pub fn compile(policy: &Policy) -> Profile {
    let mut out = Draft::default();
    out.processes();
    out.services(policy.network().mode());
    out.files(policy);
    out.devices();
    out.way_to(policy);
    out.pins(policy);
    out.network(policy);
    out.session();
    out.fingerprint();
    Profile {
        default: Action::Deny,
        rules: out.rules,
    }
}

#[derive(Debug, Default)]
struct Draft {
    rules: Vec<Rule>,
}

impl Draft {
    fn allow(
        &mut self,
        operations: &'static [&'static str],
        filters: Vec<Filter>,
        why: &'static str,
    ) {
        self.push(Action::Allow, operations, filters, why);
    }

    fn deny(
        &mut self,
        operations: &'static [&'static str],
        filters: Vec<Filter>,
        why: &'static str,
    ) {
        self.push(Action::Deny, operations, filters, why);
    }

    fn push(
        &mut self,
        action: Action,
        operations: &'static [&'static str],
        filters: Vec<Filter>,
        why: &'static str,
    ) {
        self.rules.push(Rule {
            action,
            operations,
            filters,
            why,
        });
    }

    fn processes(&mut self) {
        let why = "processes: its own, and no signal to anybody else's";
        self.allow(&["process-fork"], Vec::new(), why);
        let children = vec![Filter::Target(Target::Children)];
        self.allow(&["signal"], children, why);
        let own = vec![Filter::Target(Target::SameSandbox)];
        self.allow(&["process-info*"], own, why);
        let why = "the kernel's values, but not other programs' arguments and variables";
        self.allow(&["sysctl-read"], Vec::new(), why);
        let arguments = ["kern.procargs", "kern.procargs2"];
        let arguments = arguments.map(Filter::SysctlName).to_vec();
        self.deny(&["sysctl-read"], arguments, why);
        let why = "locks between processes, and what the C library shares with everybody";
        self.allow(&["ipc-posix-sem"], Vec::new(), why);
        let shared = vec![Filter::PosixName("apple.shm.notification_center")];
        self.allow(&["ipc-posix-shm-read*"], shared, why);
        let why = "no driver but the one that tells of sleep";
        let sleep = vec![Filter::IokitClass("RootDomainUserClient")];
        self.allow(&["iokit-open"], sleep, why);
        let why = "terminals of its own";
        self.allow(&["pseudo-tty"], Vec::new(), why);
    }

    fn services(&mut self, network: NetworkMode) {
        for service in SERVICES.iter().filter(|service| service.from <= network) {
            let name = vec![Filter::GlobalName(service.name)];
            self.allow(&["mach-lookup"], name, service.why);
        }
    }

    fn files(&mut self, policy: &Policy) {
        let files = policy.files();
        let why = "files, as the policy says: what is inside comes after what is around it";
        let default = files.default_access();
        if default != Access::None {
            let root = vec![AbsPath::root()];
            self.level(&subpaths(&root), Access::None, default, why);
        }
        for (rule, parent) in files.with_parents() {
            let around = parent.map_or(default, effective);
            let inside = effective(rule);
            // These volumes hold nothing but text: such a name cannot be made.
            if rule.found == Found::Absent && rule.path.as_path().to_str().is_none() {
                continue;
            }
            let everywhere = spellings(&rule.path);
            self.level(&subpaths(&everywhere), around, inside, why);
            // Whoever makes it first chooses the case of its letters.
            if rule.found == Found::Absent && around == Access::Write && inside < around {
                let root = parent.map_or_else(AbsPath::root, |parent| parent.path.clone());
                let roots = spellings(&root);
                let names = everywhere.iter().map(|path| {
                    let around = roots.iter().filter(|root| root.covers(path));
                    let around = around.max_by_key(|root| root.depth());
                    Filter::Name(pattern(around.unwrap_or(path), path))
                });
                self.level(&names.collect::<Vec<_>>(), around, inside, why);
            }
        }
    }

    /// Rules that take a subtree from one level to another.
    fn level(&mut self, what: &[Filter], from: Access, to: Access, why: &'static str) {
        for (operations, least) in [
            (READ, Access::Read),
            (RUN, Access::Execute),
            (WRITE, Access::Write),
        ] {
            match (from >= least, to >= least) {
                (false, true) => self.allow(operations, what.to_vec(), why),
                (true, false) => self.deny(operations, what.to_vec(), why),
                (true, true) | (false, false) => {}
            }
        }
    }

    /// Devices that hold nothing of anybody's, whatever may be seen around them.
    fn devices(&mut self) {
        let why = "devices that hold nothing of anybody's, and terminals of its own";
        let devices = DEVICES
            .iter()
            .filter_map(|device| AbsPath::parse(device).ok());
        let mut devices: Vec<Filter> = devices
            .map(|path| Filter::Subpath(PathValue::Host(path)))
            .collect();
        devices.push(Filter::PseudoTerminal);
        self.allow(READ_WRITE, devices.clone(), why);
        self.allow(&["file-ioctl"], devices, why);
        let why = "the terminal that was made for it, and never the caller's";
        let own = vec![Filter::OwnTerminal];
        self.allow(READ_WRITE, own.clone(), why);
        self.allow(&["file-ioctl"], own, why);
    }

    /// What has to be seen on the way to a granted path: that its directories are there, not what
    /// else they hold.
    fn way_to(&mut self, policy: &Policy) {
        let why = "the way to what is granted: that directories are there, not what is in them";
        let root = vec![Filter::Literal(PathValue::Host(AbsPath::root()))];
        // The loader opens the root to find everything else from there.
        self.allow(READ, root, why);
        let links = ["/etc", "/tmp", "/var", "/private", "/System/Volumes/Data"];
        let mut way: BTreeSet<AbsPath> = links
            .iter()
            .filter_map(|link| AbsPath::parse(link).ok())
            .collect();
        let granted = policy.files().rules().iter();
        for rule in granted.filter(|rule| effective(rule) != Access::None) {
            for path in spellings(&rule.path) {
                way.extend(above(&path));
            }
        }
        let way = way
            .into_iter()
            .map(|path| Filter::Literal(PathValue::Host(path)));
        self.allow(METADATA, way.collect(), why);
        let session = vec![Filter::Literal(PathValue::Session(SessionPath::Directory))];
        self.allow(METADATA, session, why);
    }

    /// Directories that must keep their names: whoever could rename one would take the rules below
    /// it along, and build the name anew without them.
    fn pins(&mut self, policy: &Policy) {
        let why = "what rules stand on keeps its name";
        let default = policy.files().default_access();
        let mut pins: BTreeSet<AbsPath> = BTreeSet::new();
        for (rule, parent) in policy.files().with_parents() {
            let around = parent.map_or(default, effective);
            if effective(rule) == Access::Write {
                pins.insert(rule.path.clone());
            }
            if around == Access::Write {
                let writable = |path: &AbsPath| {
                    let verdict = policy.files().access(path);
                    verdict.rule.map_or(verdict.access, effective) == Access::Write
                };
                pins.extend(above(&rule.path).filter(writable));
            }
        }
        let pins = pins.iter().flat_map(spellings);
        let pins: Vec<Filter> = pins
            .map(|path| Filter::Literal(PathValue::Host(path)))
            .collect();
        if !pins.is_empty() {
            self.deny(UNLINK, pins, why);
        }
    }

    fn network(&mut self, policy: &Policy) {
        let network = policy.network();
        match network.mode() {
            NetworkMode::None => {}
            NetworkMode::Hosts => {
                let why = "the network: the session's gate, and nothing else";
                self.allow(&["network-outbound"], vec![Filter::GatePort], why);
            }
            NetworkMode::All => {
                let why = "the network: everything but sockets of the host";
                let inet = &[
                    "network-outbound",
                    "network-inbound",
                    "network-bind",
                    "system-socket",
                ];
                self.allow(inet, Vec::new(), why);
                self.deny(&["network-outbound"], vec![Filter::UnixSocket], why);
                let names =
                    AbsPath::parse("/private/var/run/mDNSResponder").map(|path| spellings(&path));
                self.allow(
                    &["network-outbound"],
                    literals(&names.unwrap_or_default()),
                    why,
                );
            }
        }
        let why = "ports on the loopback that were granted";
        let out: Vec<Filter> = network
            .loopback_out()
            .iter()
            .map(|port| Filter::RemotePort(port.value))
            .collect();
        if !out.is_empty() {
            self.allow(&["network-outbound"], out, why);
        }
        let inward: Vec<Filter> = network
            .loopback_in()
            .iter()
            .map(|port| Filter::LocalPort(port.value))
            .collect();
        if !inward.is_empty() {
            self.allow(&["network-bind", "network-inbound"], inward, why);
        }
        let why = "sockets of the host that were granted";
        for grant in policy.sockets() {
            self.allow(
                &["network-outbound"],
                literals(&spellings(&grant.path)),
                why,
            );
        }
    }

    /// The session's own directory, which nothing but its temporary directory may be changed in.
    fn session(&mut self) {
        let why = "the session's own directory, and sockets in it";
        let directory = |part| vec![Filter::Subpath(PathValue::Session(part))];
        self.deny(WRITE, directory(SessionPath::Directory), why);
        let tmp = || directory(SessionPath::Tmp);
        self.allow(READ_WRITE, tmp(), why);
        self.allow(RUN, tmp(), why);
        self.allow(
            &["network-bind", "network-inbound", "network-outbound"],
            tmp(),
            why,
        );
        let itself = vec![Filter::Literal(PathValue::Session(SessionPath::Tmp))];
        self.deny(UNLINK, itself, why);
    }

    /// Last of all, so that no rule of anybody's can change it.
    fn fingerprint(&mut self) {
        let why = "the fingerprint: no other profile allows the one and denies the other";
        let point = |part| vec![Filter::Subpath(PathValue::Session(part))];
        self.deny(READ, point(SessionPath::Denied), why);
        self.allow(READ, point(SessionPath::Allowed), why);
    }
}

/// How the host's files may be used under a rule: not at all where the session is to have its own.
fn effective(rule: &FileRule) -> Access {
    match rule.content {
        Content::Host => rule.access,
        Content::Devices | Content::Memory | Content::Processes => Access::None,
    }
}

fn above(path: &AbsPath) -> impl Iterator<Item = AbsPath> {
    let root = AbsPath::root();
    std::iter::successors(path.parent(), AbsPath::parent).filter(move |path| *path != root)
}

fn subpaths(paths: &[AbsPath]) -> Vec<Filter> {
    let paths = paths.iter().cloned();
    paths
        .map(|path| Filter::Subpath(PathValue::Host(path)))
        .collect()
}

fn literals(paths: &[AbsPath]) -> Vec<Filter> {
    let paths = paths.iter().cloned();
    paths
        .map(|path| Filter::Literal(PathValue::Host(path)))
        .collect()
}
