//! Caches of toolchains in the home, which `strict` lets be written.
//!
//! A cache is here if its files are used only by whoever builds or installs something with the same
//! tool: archives, sources, compiled objects. None is here in which a shell's prompt, an editor, a
//! hook or `npx` finds programs without anything being built, and none whose files are linked into
//! the working trees of other projects, as those of pnpm and uv are.

/// Caches of toolchains in the home: read and write in `strict`.
pub const TOOLCHAIN_CACHES: &[&str] = &[
    "~/.cache/ccache",
    "~/.cache/go-build",
    "~/.cache/pip",
    "~/.cache/sccache",
    "~/.cache/yarn",
    "~/.cargo/registry",
    "~/.gradle/caches",
    "~/.m2/repository",
    // Not what is beside it: `npx` runs what is in `_npx`.
    "~/.npm/_cacache",
    "~/.yarn/berry/cache",
    "~/go/pkg",
];

/// What such a cache holds that makes its tool run something, or that is a repository of git's: a
/// cache of [`TOOLCHAIN_CACHES`], or a variable that names one, and a name below it. It stays as it
/// is, also where it is not there.
pub const CACHE_KNOBS: &[(&str, &str)] = &[
    // Where `CCACHE_DIR` names this directory: it may name a program to put before the compiler.
    ("~/.cache/ccache", "ccache.conf"),
    // Indexes that are no websites are repositories, and cargo may be told to have git read them.
    ("~/.cargo/registry", "index"),
    // Repositories of modules that come from git itself.
    ("GOMODCACHE", "cache/vcs"),
    ("~/go/pkg", "mod/cache/vcs"),
];
