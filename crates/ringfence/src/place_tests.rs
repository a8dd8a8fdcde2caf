use super::*;

use std::ffi::OsString;
use std::fs;

fn surroundings(variables: &[(&'static str, &str)], lookout: &Lookout) -> Surroundings {
    at(Path::new("/"), variables, None, lookout)
}

/// What somebody says who stands in a directory and has an account with a home.
fn at(
    current: &Path,
    variables: &[(&'static str, &str)],
    home: Option<&Path>,
    lookout: &Lookout,
) -> Surroundings {
    let variables = variables
        .iter()
        .map(|(name, value)| (*name, OsString::from(value)));
    let account = Account {
        home: home.map(Path::to_owned),
        shell: None,
    };
    Surroundings::new(current, Variables(variables.collect()), &account, lookout).unwrap()
}

/// A home, another directory, and a project in each.
struct Homes {
    _directory: tempfile::TempDir,
    account: AbsPath,
    other: AbsPath,
}

impl Homes {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = AbsPath::parse(fs::canonicalize(directory.path()).unwrap()).unwrap();
        let homes = Self {
            _directory: directory,
            account: root.below("account"),
            other: root.below("other"),
        };
        for home in [&homes.account, &homes.other] {
            fs::create_dir_all(home.below("project").as_path()).unwrap();
        }
        homes
    }

    fn stand(&self, current: &AbsPath, home: Option<&str>) -> Surroundings {
        let variables: Vec<_> = home.into_iter().map(|home| ("HOME", home)).collect();
        let account = Some(self.account.as_path());
        at(current.as_path(), &variables, account, &Lookout::new())
    }
}

fn nearest(surroundings: &Surroundings) -> Result<Place, PlaceError> {
    surroundings.place(Kind::Tool, Project::Nearest, &Lookout::new())
}

#[test]
fn without_a_variable_the_accounts_home_is_the_home() {
    let homes = Homes::new();
    for home in [None, Some("/nonexistent"), Some("/dev/null")] {
        let found = homes.stand(&homes.account, home);

        assert_eq!(found.home, Some(homes.account.clone()), "{home:?}");
        let settings = homes.account.below(".config/ringfence/settings.json");
        assert_eq!(found.user_settings().as_deref(), Some(settings.as_path()));
        let refused = nearest(&found);
        assert!(
            matches!(refused, Err(PlaceError::TooWide { .. })),
            "{home:?}"
        );
        let below = homes.stand(&homes.account.below("project"), home);
        let place = nearest(&below).unwrap();
        assert_eq!(place.project, homes.account.below("project"));
        assert_eq!(place.home, Some(homes.account.clone()));
        assert_eq!(place.account_home, None);
    }
}

#[test]
fn with_another_home_the_accounts_own_is_no_project_and_nothing_of_it_is_shown() {
    let homes = Homes::new();
    let other = homes.other.as_path().to_str().unwrap();
    for wide in [&homes.account, &homes.other] {
        let refused = nearest(&homes.stand(wide, Some(other)));
        assert!(matches!(refused, Err(PlaceError::TooWide { .. })), "{wide}");
    }
    let place = nearest(&homes.stand(&homes.other.below("project"), Some(other))).unwrap();
    assert_eq!(place.home, Some(homes.other.clone()));
    assert_eq!(place.account_home, Some(homes.account.clone()));
    let own = ["other", "account"].map(|name| {
        let home = homes.account.parent().unwrap().below(name);
        [".config/ringfence", ".local/state/ringfence"].map(|own| home.below(own))
    });
    assert_eq!(place.own, own.concat());

    // The same directory is not another one.
    let account = homes.account.as_path().to_str().unwrap();
    let found = homes.stand(&homes.other, Some(account));
    assert_eq!(found.account_home, None);
}

/// What is said of a directory, whether or not it is there.
#[cfg(target_os = "linux")]
fn said_of(directory: &str, home: &str, lookout: &Lookout) -> &'static str {
    let found = at(Path::new(directory), &[], Some(Path::new(home)), lookout);
    match found.place(Kind::Tool, Project::Nearest, lookout) {
        Ok(place) if place.project == found.current => "a project",
        Ok(_) => "in a project",
        Err(PlaceError::TooWide { .. }) => "too wide",
        Err(PlaceError::System { .. }) => "the system's",
        Err(error) => panic!("{error}"),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_of_the_system_is_a_project_by_chance() {
    for (directory, expected) in [
        ("/", "too wide"),
        ("/dev/shm", "too wide"),
        ("/etc", "too wide"),
        ("/home", "too wide"),
        ("/opt", "too wide"),
        ("/run", "too wide"),
        ("/srv", "too wide"),
        ("/tmp", "too wide"),
        ("/usr", "too wide"),
        ("/usr/local", "too wide"),
        ("/var", "too wide"),
        ("/var/tmp", "too wide"),
        ("/etc/cron.d", "the system's"),
        ("/etcetera", "a project"),
        ("/run/user/1", "the system's"),
        ("/usr/share", "the system's"),
        ("/usr/local/bin", "the system's"),
        ("/var/lib/dpkg", "the system's"),
        ("/builds/x", "a project"),
        ("/dev/shm/x", "a project"),
        ("/mnt/disk/x", "a project"),
        ("/opt/x", "a project"),
        ("/srv/x", "a project"),
        ("/tmp/x", "a project"),
        ("/usr/src/x", "a project"),
        ("/var/tmp/x/y", "a project"),
    ] {
        let said = said_of(directory, "/nonexistent", &Lookout::new());
        assert_eq!(said, expected, "{directory}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_marker_makes_a_project_in_the_system_and_none_of_it() {
    let known = |paths: &[(&str, Found)]| {
        let lookout = Lookout::new();
        for (path, found) in paths {
            lookout.know(&AbsPath::parse(path).unwrap(), *found);
        }
        lookout
    };
    let marked = known(&[("/usr/share/x/.git", Found::Directory)]);
    assert_eq!(
        said_of("/usr/share/x", "/nonexistent", &marked),
        "a project"
    );
    assert_eq!(
        said_of("/usr/share/x/y", "/nonexistent", &marked),
        "in a project"
    );
    // Some keep `/etc` in git; and in `/tmp` anybody can leave anything.
    let planted = known(&[
        ("/etc/.git", Found::Directory),
        ("/tmp/package.json", Found::File),
    ]);
    for (directory, expected) in [
        ("/etc", "too wide"),
        ("/etc/x", "the system's"),
        ("/tmp", "too wide"),
        ("/tmp/x", "a project"),
    ] {
        let said = said_of(directory, "/nonexistent", &planted);
        assert_eq!(said, expected, "{directory}");
    }
    // A service has its home in the system, and its projects in that.
    let service = known(&[("/var/lib/x", Found::Directory)]);
    assert_eq!(said_of("/var/lib/x", "/var/lib/x", &service), "too wide");
    assert_eq!(said_of("/var/lib/x/y", "/var/lib/x", &service), "a project");
    assert_eq!(
        said_of("/var/lib/y", "/var/lib/x", &service),
        "the system's"
    );
    // Where nobody has an account everything is in the home.
    assert_eq!(said_of("/etc/x", "/", &Lookout::new()), "the system's");
}

#[test]
fn sockets_are_where_variables_say() {
    let lookout = Lookout::new();
    let found = surroundings(
        &[
            (
                "DBUS_SESSION_BUS_ADDRESS",
                "unix:path=/run/user/1/bus,guid=0",
            ),
            ("DISPLAY", ":1.0"),
            ("SSH_AUTH_SOCK", "/agent"),
            ("WAYLAND_DISPLAY", "wayland-7"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
        ],
        &lookout,
    )
    .sockets();
    let expected = [
        ("docker", "/run/docker.sock"),
        ("gpg-agent", "/run/user/1/gnupg/S.gpg-agent"),
        ("podman", "/run/user/1/podman/podman.sock"),
        ("session-bus", "/run/user/1/bus"),
        ("ssh-agent", "/agent"),
        ("wayland", "/run/user/1/wayland-7"),
        ("x11", "/tmp/.X11-unix/X1"),
    ];
    assert_eq!(
        found,
        expected.map(|(name, path)| (name, PathBuf::from(path)))
    );
    // Over the network, or nonsense: no socket of this host.
    let none = surroundings(
        &[
            ("DISPLAY", ":../x"),
            ("SSH_AUTH_SOCK", "relative"),
            ("DOCKER_HOST", "unix://relative"),
        ],
        &lookout,
    )
    .sockets();
    assert_eq!(none, [("podman", PathBuf::from("/run/podman/podman.sock"))]);
}

#[test]
fn secrets_are_where_variables_say() {
    let found = surroundings(
        &[
            ("KUBECONFIG", "/a::b/c"),
            ("NETRC", "d"),
            ("XDG_CONFIG_HOME", "/config"),
            ("XDG_DATA_HOME", "relative"),
        ],
        &Lookout::new(),
    );
    let expected = [
        ("KUBECONFIG", "/a"),
        ("KUBECONFIG", "/b/c"),
        ("NETRC", "/d"),
        ("XDG_CONFIG_HOME", "/config"),
    ];
    assert_eq!(
        found.secrets(),
        expected.map(|(name, path)| (name, PathBuf::from(path)))
    );
}

#[test]
fn configurations_of_gits_are_where_variables_say() {
    let lookout = Lookout::new();
    let found = surroundings(
        &[
            ("GIT_CONFIG_GLOBAL", "mine"),
            ("GIT_CONFIG_SYSTEM", "/machine"),
            ("XDG_CONFIG_HOME", "/config"),
        ],
        &lookout,
    );
    let place = found
        .place(Kind::Tool, Project::Named(Path::new("/usr")), &lookout)
        .unwrap();
    let expected = ["/mine", "/machine", "/config/git/config"];
    assert_eq!(
        found.search(&place).configurations,
        expected.map(PathBuf::from)
    );
}
