//! Names outside of every project that programs obey later, where a session may write around them.

use ringfence_core::origin::Layer;
use ringfence_core::policy::{Access, Policy, lists, resolve};
use ringfence_core::settings::{Kind, Settings};

use crate::world::{World, path};

fn access(policy: &Policy, at: &str) -> Access {
    policy.files().access(&path(at)).access
}

fn strict(world: &World, toolchains: &[(&'static str, &str)]) -> Result<Policy, Vec<String>> {
    let keys = world.keys(Layer::User, r#"{ "preset": "strict" }"#);
    let settings = Settings::new().with(Layer::User, keys);
    let mut place = world.place(Kind::Tool);
    let variables = toolchains.iter();
    place.toolchains = variables.map(|(name, at)| (*name, at.into())).collect();
    let messages = |complaints: Vec<_>| {
        let complaints: Vec<ringfence_core::policy::Complaint> = complaints;
        complaints.into_iter().map(|it| it.message).collect()
    };
    resolve(&settings, &place, world).map_err(messages)
}

fn with_caches() -> World {
    lists::TOOLCHAIN_CACHES
        .iter()
        .fold(World::linux(), |world, cache| {
            world.directory(&cache.replace('~', "/home/u"))
        })
}

/// What a prompt, an editor, `npx`, a hook or git would run or obey without anything being built.
#[test]
fn a_strict_session_writes_no_cache_that_runs_by_itself() {
    let world = with_caches();
    let policy = strict(&world, &[("GOMODCACHE", "/home/u/go/pkg/mod")]).unwrap();
    for at in [
        ".cache/gitstatus/gitstatusd-linux-x86_64",
        ".cache/nvim/luac/%2finit.luac",
        ".cache/p10k-instant-prompt-u.zsh",
        ".cache/pre-commit/repo/bin/hook",
        ".cache/uv/archive-v0/x/bin/tool",
        ".cargo/git/db/x/config",
        ".cargo/registry/index/x/.git/config",
        ".cache/ccache/ccache.conf",
        ".npm/_npx/x/node_modules/.bin/tool",
        ".npmrc",
        ".pnpm-store/v3/files/00/x",
        ".yarn/berry/index/x",
        "go/pkg/mod/cache/vcs/x/config",
    ] {
        let at = format!("/home/u/{at}");
        assert!(access(&policy, &at) < Access::Write, "{at}");
    }
    for at in [
        ".cache/ccache/0/x",
        ".cache/pip/http-v2/x",
        ".cargo/registry/cache/x.crate",
        ".cargo/registry/src/x/lib.rs",
        ".npm/_cacache/tmp/x",
        "go/pkg/mod/cache/download/x",
    ] {
        let at = format!("/home/u/{at}");
        assert_eq!(access(&policy, &at), Access::Write, "{at}");
    }
}

/// Nor reads what programs leave in their caches.
#[test]
fn a_strict_session_reads_no_other_cache() {
    let world = with_caches()
        .directory("/home/u/.cache/mozilla")
        .directory("/home/u/.npm/_logs");
    let policy = strict(&world, &[]).unwrap();
    for at in ["/home/u/.cache/mozilla/x", "/home/u/.npm/_logs/x"] {
        assert_eq!(access(&policy, at), Access::None, "{at}");
    }
}

#[test]
fn the_cache_that_a_variable_names_is_held_the_same() {
    let world = World::linux().directory("/data/d/mod/cache/vcs/x");
    let policy = strict(&world, &[("GOMODCACHE", "/data/d/mod")]).unwrap();
    assert_eq!(
        access(&policy, "/data/d/mod/cache/vcs/x/config"),
        Access::Execute
    );
    assert_eq!(access(&policy, "/data/d/mod/x/y.go"), Access::Write);
    // What is not given as a cache is not opened up by what it holds.
    let elsewhere = World::linux().directory("/home/other/vcs");
    let elsewhere = elsewhere.link("/home/u/p/mod", "/home/other");
    let policy = strict(&elsewhere, &[("GOMODCACHE", "/home/u/p/mod")]).unwrap();
    assert_eq!(access(&policy, "/home/other/cache/vcs"), Access::None);
}

#[test]
fn a_link_in_a_cache_cannot_be_held() {
    let world = World::linux()
        .directory("/home/u/.cargo/registry")
        .directory("/data/d/index")
        .link("/home/u/.cargo/registry/index", "/data/d/index");
    assert_eq!(
        strict(&world, &[]).unwrap_err(),
        ["/home/u/.cargo/registry/index is kept as it is, but a link is in its way"]
    );
}

/// The user's bus and service manager run outside, and obey what lies there.
#[test]
fn what_services_obey_stays_as_it_is_where_the_runtime_directory_is_written() {
    let world = World::linux()
        .directory("/run/user/1000/systemd/user")
        .directory("/data/d/run");
    let policy = |keys: &str| {
        let settings = Settings::new().with(Layer::User, world.keys(Layer::User, keys));
        let mut place = world.place(Kind::Tool);
        place.runtimes = vec!["/run/user/1000".into(), "/data/d/run".into()];
        resolve(&settings, &place, &world).unwrap()
    };
    let given = |path: &str| {
        format!(
            r#"{{ "terminal": {{ "sandbox": {{ "additional_read_write_paths": ["{path}"] }} }} }}"#
        )
    };
    let presets = [
        r#"{ "preset": "terminal" }"#.to_owned(),
        given("/run/user/1000"),
        given("/run/user"),
        r#"{ "agent": { "sandbox_permissions": { "write_paths": ["/run"] } } }"#.to_owned(),
    ];
    for keys in presets {
        let policy = policy(&keys);
        for name in [
            "dbus-1/services/x.service",
            "systemd/transient/x.service",
            "systemd/user/x.service",
        ] {
            let at = format!("/run/user/1000/{name}");
            assert_eq!(access(&policy, &at), Access::Execute, "{keys} {at}");
        }
        let other = access(&policy, "/run/user/1000/other");
        assert_eq!(other, Access::Write, "{keys}");
    }
    let token = "/run/user/1000/containers/auth.json";
    let shown = policy(r#"{ "preset": "terminal" }"#);
    assert_eq!(access(&shown, token), Access::None);
    let elsewhere = policy(&given("/data/d"));
    let at = "/data/d/run/dbus-1/services/x.service";
    assert_eq!(access(&elsewhere, at), Access::Execute);
    // Nothing is shown by this that was hidden.
    let hidden = access(&policy("{}"), "/run/user/1000/systemd/user");
    assert_eq!(hidden, Access::None);
}
