//! Stores: who may read them, what is left when somebody is killed, and that nothing is lost.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ringfence_core::path::AbsPath;
use ringfence_core::permission::{Permission, Permissions};
use ringfence_core::settings::GitLevel;
use tempfile::TempDir;

use super::always::{Always, AlwaysError};
use super::threads::{ThreadId, Threads};
use super::trust::Trust;
use crate::store::StoreError;

fn host(text: &str) -> Permission {
    Permission::Host(text.parse().unwrap())
}

fn write(text: &str) -> Permission {
    Permission::Write(AbsPath::parse(text).unwrap())
}

fn set(permissions: &[Permission]) -> Permissions {
    permissions.iter().cloned().collect()
}

fn id(text: &str) -> ThreadId {
    text.parse().unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// The only visible file of a directory.
fn only_file(directory: &Path) -> PathBuf {
    let entries = fs::read_dir(directory).unwrap();
    let mut files = entries.map(|entry| entry.unwrap().path());
    files
        .find(|path| !path.file_name().unwrap().to_str().unwrap().starts_with('.'))
        .unwrap()
}

#[test]
fn a_thread_remembers_and_others_do_not() {
    let place = TempDir::new().unwrap();
    let threads = Threads::new(place.path().join("a/threads"));
    threads.grant(&id("one"), &set(&[host("a.org")])).unwrap();
    threads.deny(&id("one"), &set(&[write("/x")])).unwrap();

    let one = threads.read(&id("one")).unwrap();
    assert!(one.permissions().covers(&host("a.org")));
    assert!(one.refused(&set(&[write("/x")])).is_some());
    assert!(
        one.refused(&set(&[write("/")])).is_some(),
        "more than what was refused is refused"
    );
    assert!(one.refused(&set(&[write("/x/y")])).is_none());
    assert!(threads.read(&id("One")).unwrap().permissions().is_empty());
    assert_eq!(threads.all().unwrap().len(), 1);

    threads.grant(&id("one"), &set(&[write("/x")])).unwrap();
    assert!(threads.read(&id("one")).unwrap().denied.is_empty());
    assert!(threads.revoke(&id("one"), &host("a.org")).unwrap());
    assert!(!threads.revoke(&id("one"), &host("a.org")).unwrap());
    threads.forget(&id("one")).unwrap();
    assert!(threads.all().unwrap().is_empty());
}

#[test]
fn stores_are_for_their_owner_alone() {
    let place = TempDir::new().unwrap();
    let directory = place.path().join("threads");
    let threads = Threads::new(&directory);
    threads.grant(&id("one"), &set(&[host("a.org")])).unwrap();
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(mode(&only_file(&directory)), 0o600);
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    threads.read(&id("one")).unwrap();
    assert_eq!(mode(&directory), 0o700, "put right when it is used");
}

#[test]
fn links_are_not_followed() {
    let place = TempDir::new().unwrap();
    let directory = place.path().join("threads");
    let threads = Threads::new(&directory);
    threads.grant(&id("one"), &set(&[host("a.org")])).unwrap();
    let file = only_file(&directory);
    let elsewhere = place.path().join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    let answer = threads.read(&id("one"));
    assert!(
        matches!(answer, Err(StoreError::Foreign { .. })),
        "{answer:?}"
    );
    let linked = place.path().join("linked");
    symlink(&directory, &linked).unwrap();
    let answer = Threads::new(&linked).read(&id("one"));
    assert!(
        matches!(answer, Err(StoreError::Foreign { .. })),
        "{answer:?}"
    );
}

#[test]
fn a_store_that_does_not_read_stays_as_it_is() {
    let place = TempDir::new().unwrap();
    let directory = place.path().join("threads");
    let threads = Threads::new(&directory);
    threads.grant(&id("one"), &set(&[host("a.org")])).unwrap();
    let file = only_file(&directory);
    for text in [
        "",
        "{",
        "[]",
        r#"{"version":9}"#,
        r#"{"version":1,"thread":"one","granted":[{"kind":"host","value":"*","given":1}],"denied":[]}"#,
    ] {
        fs::write(&file, text).unwrap();
        let error = threads
            .grant(&id("one"), &set(&[host("b.org")]))
            .unwrap_err();
        assert!(
            matches!(error, StoreError::Corrupt { .. }),
            "{text}: {error}"
        );
        assert!(
            error.help().contains(file.to_str().unwrap()),
            "{}",
            error.help()
        );
        assert!(threads.read(&id("one")).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn a_thread_of_an_earlier_start_is_forgotten() {
    let place = TempDir::new().unwrap();
    let directory = place.path().join("threads");
    let threads = Threads::new(&directory);
    threads.grant(&id("one"), &set(&[host("a.org")])).unwrap();
    let file = only_file(&directory);
    let text = fs::read_to_string(&file).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["boot"] = "another".into();
    fs::write(&file, value.to_string()).unwrap();
    assert!(threads.read(&id("one")).unwrap().granted.is_empty());
}

struct Settings {
    _place: TempDir,
    file: PathBuf,
    always: Always,
}

fn settings(text: &str) -> Settings {
    let place = TempDir::new().unwrap();
    let file = place.path().join("config/settings.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    if !text.is_empty() {
        fs::write(&file, text).unwrap();
    }
    let home = AbsPath::parse(place.path()).unwrap();
    Settings {
        always: Always::new(&file, &place.path().join("state"), Some(&home)),
        _place: place,
        file,
    }
}

#[test]
fn always_is_written_under_the_known_keys_and_taken_back() {
    let settings = settings("{\n  // mine\n  \"preset\": \"strict\"\n}\n");
    let all = [
        host("a.example.org"),
        host("*.example.org"),
        write("/data/x"),
        write("/data"),
        Permission::Git(GitLevel::Write),
    ];
    settings.always.grant(&all).unwrap();
    let text = fs::read_to_string(&settings.file).unwrap();
    assert_eq!(
        text,
        "{\n  // mine\n  \"preset\": \"strict\",\n  \"agent\": {\n    \"sandbox_permissions\": {\n      \"network_hosts\": [\"*.example.org\"],\n      \"write_paths\": [\"/data\"],\n      \"allow_git_access\": true\n    }\n  }\n}\n"
    );
    for permission in [
        host("*.example.org"),
        write("/data"),
        Permission::Git(GitLevel::Write),
    ] {
        assert!(settings.always.revoke(&permission).unwrap(), "{permission}");
        assert!(
            !settings.always.revoke(&permission).unwrap(),
            "{permission}"
        );
    }
    let text = fs::read_to_string(&settings.file).unwrap();
    assert!(
        text.contains("// mine") && !text.contains("example.org"),
        "{text}"
    );
}

#[test]
fn the_part_of_this_system_is_where_its_keys_are_read() {
    let part = if cfg!(target_os = "macos") {
        "macos"
    } else {
        "linux"
    };
    let text = format!(
        "{{ \"{part}\": {{ \"agent\": {{ \"sandbox_permissions\": {{ \"network_hosts\": [\"a.org\"] }} }} }} }}"
    );
    let settings = settings(&text);
    settings.always.grant(&[host("b.org")]).unwrap();
    let now = fs::read_to_string(&settings.file).unwrap();
    assert_eq!(now, text.replace("[\"a.org\"]", "[\"a.org\", \"b.org\"]"));
}

#[test]
fn a_key_of_ringfences_own_is_raised_where_it_stands() {
    let settings = settings("{ \"git\": \"read\" }");
    settings
        .always
        .grant(&[Permission::Git(GitLevel::Write)])
        .unwrap();
    assert_eq!(
        fs::read_to_string(&settings.file).unwrap(),
        "{ \"git\": \"write\" }"
    );
}

#[test]
fn a_grant_never_lowers_the_level_of_git() {
    use GitLevel::{Full, Hidden, Read, Write};
    let access = "{ \"agent\": { \"sandbox_permissions\": { \"allow_git_access\": true } } }";
    for (text, levels) in [
        ("{ \"git\": \"full\" }", &[Hidden, Read, Write, Full][..]),
        ("{ \"git\": \"write\" }", &[Hidden, Read, Write]),
        (access, &[Hidden, Read, Write]),
        // What a preset allows is allowed, too.
        ("{ \"preset\": \"terminal\" }", &[Hidden, Read, Write, Full]),
        ("{}", &[Hidden]),
    ] {
        let settings = settings(text);
        for level in levels {
            settings.always.grant(&[Permission::Git(*level)]).unwrap();
            let now = fs::read_to_string(&settings.file).unwrap();
            assert_eq!(now, text, "{level}");
        }
    }
}

/// A list of hosts is all that can be reached, so one on it would shut out the others.
#[test]
fn a_host_is_not_granted_where_any_can_be_reached() {
    for text in [
        "{ \"terminal\": { \"sandbox\": { \"allow_network\": true } } }",
        "{ \"network\": { \"mode\": \"all\" } }",
        "{ \"preset\": \"terminal\" }",
    ] {
        let settings = settings(text);
        settings.always.grant(&[host("a.org")]).unwrap();
        settings.always.grant(&[Permission::AnyHost]).unwrap();
        assert_eq!(fs::read_to_string(&settings.file).unwrap(), text);
    }
}

/// In a shell there is more without the key than with it.
#[test]
fn what_hides_git_is_no_grant_to_be_taken_back() {
    let text = "{ \"git\": \"hidden\" }";
    let settings = settings(text);
    let revoked = settings.always.revoke(&Permission::Git(GitLevel::Read));
    assert!(!revoked.unwrap());
    assert_eq!(fs::read_to_string(&settings.file).unwrap(), text);
}

#[test]
fn links_and_modes_of_the_users_file_stay() {
    let settings = settings("{}\n");
    let real = settings.file.with_file_name("real.json");
    fs::rename(&settings.file, &real).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real.json", &settings.file).unwrap();
    settings.always.grant(&[host("b.org")]).unwrap();
    assert!(fs::symlink_metadata(&settings.file).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("b.org"));
    assert_eq!(mode(&real), 0o640);
}

#[test]
fn a_file_with_a_mistake_is_not_touched() {
    for text in [
        "{",
        "{ \"agnet\": {} }",
        "{ \"agent\": { \"sandbox_permissions\": { \"network_hosts\": [\"*\"] } } }",
    ] {
        let settings = settings(text);
        let error = settings.always.grant(&[host("b.org")]).unwrap_err();
        assert!(matches!(error, AlwaysError::Unsound { .. }), "{error}");
        assert_eq!(fs::read_to_string(&settings.file).unwrap(), text);
    }
}

#[test]
fn a_new_file_is_private() {
    let settings = settings("");
    settings.always.grant(&[Permission::AnyHost]).unwrap();
    assert_eq!(mode(&settings.file), 0o600);
    let error = settings.always.grant(&[Permission::Fallback]).unwrap_err();
    assert!(matches!(error, AlwaysError::Never { .. }));
}

#[test]
fn trust_holds_for_exactly_one_text() {
    let place = TempDir::new().unwrap();
    let trust = Trust::new(&place.path().join("state"));
    let project = AbsPath::parse("/p").unwrap();
    assert!(!trust.covers(&project, "{}").unwrap());
    trust.pin(&project, "{}").unwrap();
    assert!(trust.covers(&project, "{}").unwrap());
    assert!(!trust.covers(&project, "{} ").unwrap());
    assert!(!trust.covers(&AbsPath::parse("/q").unwrap(), "{}").unwrap());
    assert!(trust.revoke(project.as_path()).unwrap());
    assert!(!trust.revoke(project.as_path()).unwrap());
    assert!(!trust.covers(&project, "{}").unwrap());
}

/// What a process of its own does for the tests below; nothing when it runs as a test.
#[test]
fn writer() {
    let Some(directory) = std::env::var_os("RINGFENCE_TEST_WRITER") else {
        return;
    };
    let directory = PathBuf::from(directory);
    let variable = |name: &str| std::env::var(name).unwrap();
    let name = variable("RINGFENCE_TEST_NAME");
    let count: usize = variable("RINGFENCE_TEST_COUNT").parse().unwrap();
    let threads = Threads::new(&directory);
    let always = Always::new(
        &directory.join("settings.json"),
        &directory.join("state"),
        None,
    );
    for number in 0..count {
        let granted = set(&[host(&format!("{name}{number}.example.org"))]);
        if variable("RINGFENCE_TEST_KIND") == THREAD {
            threads.grant(&id("shared"), &granted).unwrap();
        } else {
            always.grant(&granted).unwrap();
        }
    }
}

const THREAD: &str = "thread";
const ALWAYS: &str = "always";

fn start_writer(directory: &Path, kind: &str, name: &str, count: usize) -> std::process::Child {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "grants::tests::writer"])
        .env("RINGFENCE_TEST_WRITER", directory)
        .env("RINGFENCE_TEST_KIND", kind)
        .env("RINGFENCE_TEST_NAME", name)
        .env("RINGFENCE_TEST_COUNT", count.to_string())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

/// How many hosts a place grants; it must read.
fn hosts_granted(directory: &Path, kind: &str) -> usize {
    if kind == THREAD {
        let kept = Threads::new(directory).read(&id("shared")).unwrap();
        return kept.granted.len();
    }
    let text = fs::read_to_string(directory.join("settings.json")).unwrap_or_default();
    let key = ["agent", "sandbox_permissions", "network_hosts"];
    ringfence_core::settings::edit::entries_of(&text, &key).len()
}

#[test]
fn two_processes_that_write_at_once_lose_nothing() {
    for (kind, each) in [(THREAD, 500), (ALWAYS, 50)] {
        let place = TempDir::new().unwrap();
        let directory = place.path().join("kept");
        fs::create_dir(&directory).unwrap();
        let mut writers = ["a", "b"].map(|name| start_writer(&directory, kind, name, each));
        for writer in &mut writers {
            assert!(writer.wait().unwrap().success());
        }
        assert_eq!(hosts_granted(&directory, kind), 2 * each, "{kind}");
    }
}

#[test]
fn whoever_is_killed_leaves_the_old_store_or_the_new_one() {
    for kind in [THREAD, ALWAYS] {
        let place = TempDir::new().unwrap();
        let directory = place.path().join("kept");
        fs::create_dir(&directory).unwrap();
        let mut known = 0;
        for round in 0..40_u64 {
            let mut writer = start_writer(&directory, kind, &format!("r{round}n"), 100_000);
            if round % 10 == 9 {
                // On a busy machine none of the others might come as far as writing.
                let start = std::time::Instant::now();
                while hosts_granted(&directory, kind) == known {
                    assert!(start.elapsed().as_secs() < 60, "{kind}: nobody writes");
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            } else {
                std::thread::sleep(std::time::Duration::from_micros(15_000 + round * 700));
            }
            writer.kill().unwrap();
            writer.wait().unwrap();
            let now = hosts_granted(&directory, kind);
            assert!(now >= known, "{kind}: {now} of {known} are left");
            known = now;
        }
        assert!(known > 0, "{kind}: nobody was killed while writing");
        let mut last = start_writer(&directory, kind, "last", 1);
        assert!(last.wait().unwrap().success());
        assert_eq!(hosts_granted(&directory, kind), known + 1, "{kind}");
    }
}
