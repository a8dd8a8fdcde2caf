//! The built-in lists that were taken over as data are exactly what users of the original expect.

use ringfence_core::policy::lists;
use ringfence_core::settings::Os;

fn sorted(list: &[&'static str]) -> Vec<&'static str> {
    let mut list = list.to_vec();
    list.sort_unstable();
    list
}

#[test]
fn system_paths_of_linux() {
    let lists = lists::system_paths(Os::Linux);
    assert_eq!(
        lists.executable,
        [
            "/usr/bin",
            "/usr/sbin",
            "/usr/lib",
            "/usr/lib64",
            "/usr/libexec",
            "/lib",
            "/lib64",
            "/bin",
            "/sbin",
        ]
    );
    assert_eq!(
        lists.read_only,
        ["/etc", "/usr/share", "/usr/include", "/usr/lib/locale"]
    );
    assert_eq!(
        lists.read_write,
        ["/dev", "/tmp", "/var/tmp", "/dev/shm", "/run/user"]
    );
}

#[test]
fn system_paths_of_macos() {
    let lists = lists::system_paths(Os::Macos);
    assert_eq!(
        lists.executable,
        [
            "/bin",
            "/usr/bin",
            "/usr/sbin",
            "/sbin",
            "/usr/lib",
            "/usr/libexec",
            "/System/Library/dyld",
            "/System/Cryptexes",
            "/Library/Developer/CommandLineTools/usr/bin",
            "/Library/Developer/CommandLineTools/usr/lib",
            "/Library/Apple/usr/bin",
            "/opt/homebrew/bin",
            "/opt/homebrew/sbin",
            "/opt/homebrew/Cellar",
            "/opt/homebrew/lib",
            "/usr/local/bin",
            "/usr/local/lib",
        ]
    );
    assert_eq!(
        lists.read_only,
        [
            "/private/etc",
            "/private/var/select",
            "/private/var/db/dyld",
            "/private/var/db/timezone",
            "/usr/share",
            "/System/Library",
            "/System/Library/Keychains",
            "/Library/Developer/CommandLineTools/SDKs",
            "/Library/Preferences/SystemConfiguration",
            "/opt/homebrew/share",
            "/opt/homebrew/etc",
            "/usr/local/share",
            "/usr/local/etc",
        ]
    );
    assert_eq!(
        lists.read_write,
        ["/dev", "/private/tmp", "/private/var/run/mDNSResponder"]
    );
}

#[test]
fn variables_and_start_up_files() {
    assert_eq!(
        lists::TERMINAL_VARIABLES,
        [
            "PATH",
            "HOME",
            "USER",
            "SHELL",
            "LANG",
            "TERM",
            "TERM_PROGRAM",
            "CARGO_HOME",
            "RUSTUP_HOME",
            "GOPATH",
            "EDITOR",
            "VISUAL",
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_RUNTIME_DIR",
            "SSH_AUTH_SOCK",
            "GPG_TTY",
            "COLORTERM",
        ]
    );
    let expected = [
        "~/.bashrc",
        "~/.bash_profile",
        "~/.bash_login",
        "~/.profile",
        "~/.zshrc",
        "~/.zshenv",
        "~/.zprofile",
        "~/.zlogin",
        "~/.zlogout",
        "~/.inputrc",
        "~/.terminfo",
        "~/.gitconfig",
        "~/.config",
    ];
    assert_eq!(sorted(lists::DOTFILES), sorted(&expected));
}

#[test]
fn no_list_says_a_thing_twice_or_in_an_odd_way() {
    let names: Vec<&str> = lists::PROTECTED.iter().map(|(name, _)| *name).collect();
    for list in [
        lists::SECRETS,
        lists::DOTFILES,
        lists::TOOLCHAINS,
        lists::TOOLCHAIN_CACHES,
        lists::GIT_HOOKS,
        lists::GIT_KNOBS,
        lists::RUN_LATER,
        lists::RUN_LATER_IN,
        lists::WORKTREE_KNOBS,
        lists::TERMINAL_VARIABLES,
        lists::PLAIN_VARIABLES,
        &names,
    ] {
        let mut unique = sorted(list);
        unique.dedup();
        assert_eq!(unique.len(), list.len(), "{list:?}");
    }
    for path in lists::SECRETS
        .iter()
        .chain(lists::TOOLCHAINS)
        .chain(lists::TOOLCHAIN_CACHES)
    {
        assert!(path.starts_with("~/") || path.starts_with('/'), "{path}");
        assert!(
            !path.ends_with('/') && !path.contains("..") && !path.contains("//"),
            "{path}"
        );
    }
}

#[test]
fn what_a_cache_holds_belongs_to_one_of_the_list() {
    for (cache, name) in lists::CACHE_KNOBS {
        let variables = lists::TOOLCHAIN_VARIABLES.iter();
        let mut known = variables.filter(|(_, what)| *what == lists::Toolchain::Cache);
        assert!(
            lists::TOOLCHAIN_CACHES.contains(cache) || known.any(|(known, _)| known == cache),
            "{cache}"
        );
        assert!(!name.starts_with('/') && !name.contains(".."), "{name}");
    }
}

#[test]
fn what_the_design_calls_secret_is_hidden() {
    for secret in [
        "~/.ssh",
        "~/.gnupg",
        "~/.aws",
        "~/.azure",
        "~/.config/gcloud",
        "~/.kube",
        "~/.docker",
        "~/.netrc",
        "~/.git-credentials",
        "~/.config/gh",
        "~/.npmrc",
        "~/.pypirc",
        "~/.cargo/credentials.toml",
        "~/.password-store",
        "~/.local/share/keyrings",
        "~/.mozilla",
        "~/.config/google-chrome",
        "~/.bash_history",
        "~/.zsh_history",
        "~/.python_history",
    ] {
        assert!(lists::SECRETS.contains(&secret), "{secret}");
    }
}
