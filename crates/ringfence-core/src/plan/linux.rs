//! Plans for Linux: which engine, which acts, which gaps.

use super::facts::{Arch, Bwrap, Feature, HostFacts, MountApi};
use super::landlock::{Tree, ruleset};
use super::{
    Act, DELEGATE, Draft, Engine, EngineChoice, LimitName, NetworkNamespace, SOCKET, Tracking,
    bounds, network_namespace,
};
use super::{gate, mounts};
use crate::origin::{Layer, Origin};
use crate::path::AbsPath;
use crate::policy::{Access, Content, Found, Policy};
use crate::seccomp::{
    self, Creating, FilterSpec, GroupSignals, HostProcesses, InetSockets, Listening, RouteQueries,
    SystemIpc, UnixSockets,
};
use crate::settings::{Limit, NetworkMode, Tmp};

/// From this version Landlock holds `truncate`, and so descriptors that are passed on.
const ABI_TRUNCATE: u32 = 3;
/// From this version Landlock tells sockets at a path that were made inside from all others.
pub(super) const ABI_UNIX_PATHS: u32 = 9;
/// From this version Landlock keeps signals inside.
const ABI_SCOPES: u32 = 6;
/// A directory that is moved out of a bind mount while it is open kept wrong rights until this was
/// mended.
const ERRATUM_DISCONNECTED: u32 = 1 << 2;

pub(super) fn compile(
    policy: &Policy,
    facts: &HostFacts,
    choice: EngineChoice,
    draft: &mut Draft,
) -> Engine {
    draft.acts.push(Act::Environment);
    draft.acts.push(Act::Descriptors);
    draft.acts.push(Act::Command);
    limits(policy, facts, draft);
    if policy.only_tracks() {
        draft.acts.push(Act::Init);
        draft.tracking = tracking(Engine::Track, facts, draft);
        tmp_size(policy, Engine::Track, draft);
        return Engine::Track;
    }
    let engine = match choice {
        EngineChoice::Auto => strongest(facts),
        EngineChoice::Named(engine) => engine,
    };
    match engine {
        Engine::Namespaces | Engine::Bwrap => own_root(policy, facts, engine, draft),
        Engine::Landlock => host_root(policy, facts, draft),
        Engine::Seatbelt | Engine::Track => draft.gap(
            policy,
            "every rule",
            "this engine does not exist on Linux",
            "use `--engine auto`",
        ),
    }
    draft.tracking = tracking(engine, facts, draft);
    if draft.tracking == Tracking::Descent {
        draft.gap(
            policy,
            "nothing survives",
            "processes are found by searching for descendants, not by a boundary of the kernel's",
            "delegate a cgroup to the user, or use the `namespaces` engine",
        );
    }
    gate::plan(policy, facts, engine, draft);
    sockets(policy, draft);
    tmp_size(policy, engine, draft);
    engine
}

/// What finds every process of a session again, and a cgroup where that takes one.
///
/// A pid namespace is a boundary of the kernel's as good as a cgroup, and costs nothing beside
/// what a session needs anyway: there a cgroup is made only to carry a limit.
fn tracking(engine: Engine, facts: &HostFacts, draft: &mut Draft) -> Tracking {
    let namespaced = matches!(engine, Engine::Bwrap | Engine::Namespaces);
    let cgroup = facts.cgroup.own.works();
    if cgroup && (!namespaced || !draft.controlled.is_empty()) {
        draft.acts.push(Act::Cgroup);
    }
    if namespaced {
        Tracking::PidNamespace
    } else if cgroup {
        Tracking::Cgroup
    } else if facts.mark.works() {
        Tracking::Mark
    } else {
        Tracking::Descent
    }
}

/// The strongest engine that can work here.
fn strongest(facts: &HostFacts) -> Engine {
    match (&facts.user_namespaces, &facts.bwrap) {
        (Feature::Works, _) => Engine::Namespaces,
        (Feature::Missing { .. }, Bwrap::Usable { .. }) => Engine::Bwrap,
        (Feature::Missing { .. }, Bwrap::Absent | Bwrap::Setuid { .. }) => Engine::Landlock,
    }
}

fn own_root(policy: &Policy, facts: &HostFacts, engine: Engine, draft: &mut Draft) {
    match (engine, &facts.bwrap) {
        (Engine::Bwrap, Bwrap::Usable { .. }) => {}
        (Engine::Bwrap, Bwrap::Setuid { path }) => draft.gap(
            policy,
            "every rule",
            &format!("{path} is setuid, so it would run as root with arguments of this policy"),
            "install a bubblewrap that is not setuid",
        ),
        (Engine::Bwrap, Bwrap::Absent) => draft.gap(
            policy,
            "every rule",
            "there is no bwrap in /usr/bin or /usr/local/bin",
            "install bubblewrap, or use `--engine auto`",
        ),
        _ => need(&facts.user_namespaces, policy, "every rule", draft),
    }
    if engine == Engine::Bwrap {
        runnable(policy, draft);
    }
    let network = network_namespace(policy);
    if engine == Engine::Namespaces {
        need(
            &facts.proc_mount,
            policy,
            "processes of the host are hidden",
            draft,
        );
        if network == NetworkNamespace::Own {
            let origin = policy.network().mode_origin().clone();
            let rule = format!("network {}", policy.network().mode());
            need_of(&facts.network_namespaces, origin, &rule, draft);
        }
        match facts.mount_api {
            MountApi::Descriptors => {}
            MountApi::Paths => draft.gap(
                policy,
                "nothing outside the grants changes",
                "file systems mounted below a read-only path stay writable, and what is mounted could be exchanged for something else on the way: this kernel mounts by path only",
                "use Linux 5.12 or later",
            ),
        }
    }
    let root = mounts::root(policy);
    if !root.absent.is_empty() {
        draft.acts.push(Act::Names {
            absent: root.absent,
        });
    }
    draft.acts.extend([
        Act::Namespaces { network },
        Act::Keyring,
        Act::Ids,
        Act::Root {
            base: root.base,
            mounts: root.mounts,
        },
        Act::Capabilities,
        Act::Privileges,
        Act::Init,
    ]);
    if network == NetworkNamespace::Own {
        draft.acts.push(Act::Loopback);
    }
    if facts.landlock.abi > 0 {
        draft
            .acts
            .push(Act::Landlock(ruleset(policy, facts, Tree::Own)));
    }
    if facts.landlock.abi < ABI_TRUNCATE {
        draft.gap(
            policy,
            "nothing outside the grants changes",
            "a file passed as standard input, output or error could be opened again with more rights: Landlock is missing or too old here",
            "use Linux 6.2 or later with Landlock enabled",
        );
    }
    let inet = InetSockets::Open;
    filter(policy, facts, inet, SystemIpc::Own, draft);
}

/// What bubblewrap's mounts cannot take away: running what may be read, in a tree that may be run.
fn runnable(policy: &Policy, draft: &mut Draft) {
    for (rule, above) in policy.files().with_surroundings() {
        // A default is held where it can be; a rule that somebody wrote must hold.
        let written = rule.origin.layer() != Layer::BuiltIn;
        // A socket cannot be run, nor anything else that is no file.
        let there = matches!(rule.found, Found::Directory | Found::File);
        if written && there && rule.access == Access::Read && above >= Access::Execute {
            draft.gap_of(
                rule.origin.clone(),
                format!("{}: {}", rule.path, rule.access),
                format!(
                    "bwrap cannot forbid running inside a grant, so it would be: {}",
                    Access::Execute
                ),
                "use the `namespaces` engine, or let it be run, too",
            );
        }
    }
}

fn host_root(policy: &Policy, facts: &HostFacts, draft: &mut Draft) {
    draft
        .acts
        .extend([Act::Keyring, Act::Capabilities, Act::Privileges, Act::Init]);
    if facts.landlock.abi == 0 {
        draft.gap(
            policy,
            "every file rule",
            "there is no Landlock in this kernel, and user namespaces are refused",
            "enable Landlock (`lsm=landlock,...` on the kernel's command line), or allow user namespaces",
        );
    } else {
        draft
            .acts
            .push(Act::Landlock(ruleset(policy, facts, Tree::Host)));
    }
    let namespaces = "use the `namespaces` engine, which needs user namespaces";
    draft.gap(
        policy,
        "nothing outside the grants changes",
        "modes, owners, times and extended attributes of the user's own files can be changed anywhere",
        namespaces,
    );
    if facts.landlock.abi < ABI_TRUNCATE {
        draft.gap(
            policy,
            "nothing outside the grants changes",
            "files that may only be read can be truncated",
            "use Linux 6.2 or later",
        );
    }
    if facts.landlock.abi < ABI_SCOPES {
        draft.gap(
            policy,
            "no process outside is signalled",
            "other processes of the user can be ended",
            "use Linux 6.12 or later",
        );
    }
    if facts.landlock.abi > 0 && facts.landlock.errata & ERRATUM_DISCONNECTED == 0 {
        draft.gap(
            policy,
            "nothing outside the grants changes",
            "in bind mounts, a directory that is moved away while it is open may gain rights",
            "use a kernel with Landlock's third erratum mended",
        );
    }
    own_trees(policy, draft);
    let default = policy.files().default_access();
    for (rule, parent) in policy.files().with_parents() {
        let above = match parent {
            // A directory in memory is not there, and the host's of that name is what its surroundings are.
            Some(parent) if parent.content == Content::Memory => host_access(policy, &parent.path),
            Some(parent) => parent.access,
            None => default,
        };
        let late = rule.found == Found::Absent && above != Access::Write;
        let own = rule.content.is_own() && rule.access != Access::None;
        if rule.access >= above || own || late {
            continue;
        }
        let rewrite = match rule.found {
            Found::Absent => {
                "grant the existing entries of the directory one by one instead of the whole"
            }
            Found::Directory | Found::File | Found::Other => {
                "grant its neighbours one by one instead of the directory around it, or use the `namespaces` engine"
            }
        };
        draft.gap_of(
            rule.origin.clone(),
            format!("{}: {}", rule.path, rule.access),
            format!("Landlock cannot take away inside a grant, so it would be: {above}"),
            rewrite,
        );
    }
    let inet = match policy.network().mode() {
        NetworkMode::All => InetSockets::Open,
        NetworkMode::None | NetworkMode::Hosts => InetSockets::Refused,
    };
    filter(policy, facts, inet, SystemIpc::Shared, draft);
}

/// What the host's files of a name would be: the nearest rule about the host's says.
fn host_access(policy: &Policy, path: &AbsPath) -> Access {
    let rules = policy.files().rules().iter();
    rules
        .filter(|host| host.content == Content::Host && host.path.covers(path))
        .max_by_key(|host| host.path.depth())
        .map_or_else(|| policy.files().default_access(), |host| host.access)
}

/// What a session should have its own of, and here shares with the host.
fn own_trees(policy: &Policy, draft: &mut Draft) {
    for (rule, parent) in policy.files().with_parents() {
        if !rule.content.is_own() {
            continue;
        }
        let above = host_access(policy, &rule.path);
        let lost = match rule.content {
            Content::Host => continue,
            own if parent.is_some_and(|parent| parent.content == own) => continue,
            Content::Devices if above == Access::None => continue,
            Content::Devices => format!("the host's devices and terminals would be: {above}"),
            Content::Memory if above == Access::None => {
                "there would be none, and the host's cannot be used".to_owned()
            }
            Content::Memory => format!("there would be none, and the host's would be: {above}"),
            Content::Processes => {
                "names and command lines of the host's processes can be read".to_owned()
            }
        };
        let fix = match rule.content {
            Content::Memory => "write `tmp: host`, or use the `namespaces` engine",
            Content::Devices | Content::Host | Content::Processes => {
                "use the `namespaces` engine, which needs user namespaces"
            }
        };
        let rule_text = format!("{} of the session's own", rule.path);
        draft.gap_of(rule.origin.clone(), rule_text, lost, fix);
    }
}

/// A bound on temporary directories that somebody wrote, where nothing carries it.
fn tmp_size(policy: &Policy, engine: Engine, draft: &mut Draft) {
    let limit = &policy.limits().tmp_size;
    let bounded = limit.value != Limit::Unlimited && limit.origin.layer() != Layer::BuiltIn;
    let own =
        policy.tmp().value == Tmp::Private && matches!(engine, Engine::Bwrap | Engine::Namespaces);
    if bounded && !own {
        draft.gap_of(
            limit.origin.clone(),
            "limit tmp_size",
            "the host's temporary directories cannot be bounded",
            "write `tmp: private`, or \"none\"",
        );
    }
}

fn filter(
    policy: &Policy,
    facts: &HostFacts,
    inet: InetSockets,
    ipc: SystemIpc,
    draft: &mut Draft,
) {
    need(&facts.seccomp, policy, "system calls are filtered", draft);
    let arch = match facts.arch {
        Arch::Aarch64 => seccomp::Arch::Aarch64,
        Arch::X86_64 => seccomp::Arch::X86_64,
        Arch::Other => {
            draft.gap(
                policy,
                "system calls are filtered",
                "ringfence does not know the system calls of this processor",
                "use an x86_64 or aarch64 machine",
            );
            return;
        }
    };
    // Without a tree of the session's own a supervisor could not tell whose anything is.
    let asked = ipc == SystemIpc::Own && facts.seccomp_listener.works();
    // A mount does not keep anybody from a socket. Landlock does, or else the supervisor connects in
    // the command's place; where single hosts are reached, it does so for other families anyway.
    let unix = match (facts.landlock.abi >= ABI_UNIX_PATHS, asked) {
        (true, true) if policy.network().mode() == NetworkMode::Hosts => UnixSockets::Passed,
        (true, _) => UnixSockets::Open,
        (false, true) => UnixSockets::Brokered,
        (false, false) => UnixSockets::Refused,
    };
    let names = draft
        .acts
        .iter()
        .any(|act| matches!(act, Act::Names { .. }));
    if names && !asked {
        let Feature::Missing { why, fix } = &facts.seccomp_listener else {
            return;
        };
        draft.gap(
            policy,
            "a protected name that does not exist is not made",
            &format!("it could be made, and would be put aside when the session ends: {why}"),
            fix,
        );
    }
    draft.acts.push(Act::Seccomp(FilterSpec {
        creating: if names && asked {
            Creating::Asked
        } else {
            Creating::Free
        },
        group_signals: if facts.landlock.abi < ABI_SCOPES {
            GroupSignals::Refused
        } else {
            GroupSignals::Allowed
        },
        host_processes: match ipc {
            SystemIpc::Own => HostProcesses::Hidden,
            SystemIpc::Shared => HostProcesses::InSight,
        },
        inet,
        ipc,
        listening: match inet {
            InetSockets::Refused if unix == UnixSockets::Refused => Listening::Refused,
            InetSockets::Refused
            | InetSockets::Open
            | InetSockets::TcpAndUdpPorts
            | InetSockets::TcpPorts => Listening::Allowed,
        },
        route_queries: match inet {
            InetSockets::Refused => RouteQueries::Refused,
            InetSockets::Open | InetSockets::TcpAndUdpPorts | InetSockets::TcpPorts => {
                RouteQueries::Allowed
            }
        },
        unix,
        ..FilterSpec::strictest(arch)
    }));
}

/// Sockets of the host that were granted, where nothing tells them from all others.
fn sockets(policy: &Policy, draft: &mut Draft) {
    let refused = !draft
        .acts
        .iter()
        .any(|act| matches!(act, Act::Seccomp(spec) if spec.unix != UnixSockets::Refused));
    for grant in policy.sockets().iter().filter(|_| refused) {
        draft.gap_of(
            grant.origin.clone(),
            format!("{SOCKET} {}", grant.path),
            "nothing here can tell it from other sockets, so none of the host's can be connected to",
            "use the `namespaces` engine outside of other sandboxes, use Linux 7.1 or later, or take the grant away",
        );
    }
}

/// Sets every limit that something here can hold.
///
/// A default is set where it can be had for nothing; a limit that somebody wrote must hold.
fn limits(policy: &Policy, facts: &HostFacts, draft: &mut Draft) {
    let controller = |name: &str| facts.cgroup.controllers.iter().any(|known| known == name);
    let mut set = Vec::new();
    for (name, bound, origin) in bounds(policy) {
        let written = origin.layer() != Layer::BuiltIn;
        let by_process = name == LimitName::Processes && facts.process_limit.works();
        match name.controller().filter(|_| !by_process) {
            None => set.push((name, bound)),
            Some(wanted) if written && controller(wanted) => {
                draft.controlled.push(name);
                set.push((name, bound));
            }
            Some(wanted) if written => {
                // Something is better than nothing, where a gap is put up with.
                let partly = if name == LimitName::Memory {
                    set.push((name, bound));
                    ", only for each process by itself"
                } else {
                    ""
                };
                draft.gap_of(
                    origin,
                    name.rule(),
                    format!("nothing here can bound it for the whole session{partly}"),
                    format!(
                        "delegate the cgroup controller `{wanted}` ({DELEGATE}), or take the limit off: `--limit {name}=none`"
                    ),
                );
            }
            Some(_) => {}
        }
    }
    if !set.is_empty() {
        draft.acts.push(Act::Limits { bounds: set });
    }
}

fn need(feature: &Feature, policy: &Policy, rule: &str, draft: &mut Draft) {
    need_of(feature, policy.preset().origin.clone(), rule, draft);
}

fn need_of(feature: &Feature, origin: Origin, rule: &str, draft: &mut Draft) {
    if let Feature::Missing { why, fix } = feature {
        draft.gap_of(origin, rule, why.as_str(), fix.as_str());
    }
}
