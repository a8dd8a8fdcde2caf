use crate::world::World;

#[test]
fn a_key_is_hidden_by_the_secrets_list() {
    let world = World::new();
    let key = world.home().join(".ssh/id_ed25519");

    let ran = world.run(&["explain".as_ref(), key.as_os_str()]);

    assert_eq!(ran.code, Some(0));
    assert!(
        ran.out.contains("hidden: built-in secrets list"),
        "{}",
        ran.out
    );
    insta::assert_snapshot!(ran.golden());
}

#[test]
fn a_secret_that_does_not_exist_is_hidden_too() {
    let world = World::new();
    let token = world.home().join(".config/gh/hosts.yml");

    let ran = world.run(&["explain".as_ref(), token.as_os_str()]);

    insta::assert_snapshot!(ran.golden());
}

#[test]
fn paths_of_the_project() {
    let world = World::new();
    world.write("home/project/.vscode/tasks.json", "{}");
    world.write("home/project/.git/HEAD", "ref: refs/heads/main\n");

    let ran = world.run(&[
        "explain",
        "src/main.rs",
        "new.rs",
        ".git/HEAD",
        ".vscode/tasks.json",
        ".envrc",
        "../other",
    ]);

    insta::assert_snapshot!(ran.golden());
}

#[test]
fn a_link_is_followed_and_said() {
    let world = World::new();
    let link = world.project().join("innocent");
    std::os::unix::fs::symlink(world.home().join(".ssh/id_ed25519"), link).unwrap();

    let ran = world.run(&["explain", "innocent"]);

    insta::assert_snapshot!(ran.golden());
}

#[test]
fn the_rule_of_a_file_is_named_by_line_and_column() {
    let world = World::new();
    world.write("home/notes/a.txt", "");
    world.user_settings(
        "{\n  \"secrets\": {\n    \"hide\": [\"~/notes\"]\n  },\n  \"git\": \"read\"\n}\n",
    );
    world.project_settings("{ \"secrets\": { \"hide\": [\"../src\"] } }\n");
    let notes = world.home().join("notes");

    let ran = world.run(&[
        "explain".as_ref(),
        notes.as_os_str(),
        notes.join("a.txt").as_os_str(),
        "src/main.rs".as_ref(),
        ".git".as_ref(),
    ]);

    insta::assert_snapshot!(ran.golden());
}

#[test]
fn the_line_that_is_offered_does_grant() {
    let world = World::new();
    let key = world.home().join(".ssh/id_ed25519");
    let asked = |world: &World| {
        let ran = world.run(&["explain".as_ref(), key.as_os_str(), "--json".as_ref()]);
        let answer: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        answer["answers"][0].clone()
    };
    let before = asked(&world);
    assert_eq!(before["verdict"], "hidden");
    let line = before["grant"]["setting"].as_str().unwrap();
    assert_eq!(
        before["grant"]["file"],
        "[HOME]/.config/ringfence/settings.json"
    );

    world.user_settings(format!("{{ {line} }}"));

    assert_eq!(asked(&world)["verdict"], "read");
}

#[test]
fn the_flag_that_is_offered_does_grant() {
    let world = World::new();
    for path in ["../.ssh/id_ed25519", ".vscode", ".git", "../../home/x y"] {
        world.write("home/x y", "");
        world.write("home/project/.vscode/x", "");
        world.write("home/project/.git/HEAD", "");
        let ask = |flags: &[String]| {
            let mut arguments = vec!["explain".to_owned(), path.to_owned(), "--json".to_owned()];
            arguments.extend(flags.iter().cloned());
            let ran = world.run(&arguments);
            let answer: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
            answer["answers"][0].clone()
        };
        let before = ask(&[]);
        let flag = before["grant"]["flag"].as_str().unwrap();
        let flag = flag.replace("[PROJECT]", world.project().to_str().unwrap());
        let flag = flag.replace("[HOME]", world.home().to_str().unwrap());
        let (name, value) = flag.split_once(' ').unwrap();
        let value = value.trim_matches('\'').to_owned();

        let after = ask(&[name.to_owned(), value]);

        assert_ne!(before["verdict"], after["verdict"], "{path}");
    }
}

#[test]
fn hosts() {
    let world = World::new();
    world.user_settings("{\n  \"network\": {\n    \"hosts\": [\"*.example.org\"]\n  }\n}\n");

    let ran = world.run(&[
        "explain",
        "--host",
        "api.example.org",
        "--host",
        "example.org",
        "--host",
        "API.Example.ORG.:8443",
        "--host",
        "[2001:db8::1]:22",
    ]);
    let refused = World::new().run(&["explain", "--host", "example.org"]);

    insta::assert_snapshot!(ran.golden() + &refused.golden());
}

#[test]
fn what_is_not_one_host_is_refused() {
    let world = World::new();
    for host in [
        "*",
        "*.example.org",
        "a:*",
        "https://a/",
        "localhost",
        "127.1",
    ] {
        let ran = world.run(&["explain", "--host", host]);
        assert_eq!(ran.code, Some(2), "{host}");
        assert!(ran.errors.starts_with("error: `"), "{}", ran.errors);
    }
}

#[test]
fn variables() {
    let world = World::new();
    world
        .user_settings("{ \"env\": { \"set\": { \"CI\": \"1\\u001b\" }, \"allow\": [\"MY_*\"] } }");

    let ran = world.run(&[
        "explain",
        "--env",
        "PATH",
        "--env",
        "MY_VALUE",
        "--env",
        "CI",
        "--env",
        "LD_PRELOAD",
        "--env",
        "SSH_AUTH_SOCK",
    ]);

    insta::assert_snapshot!(ran.golden());
}

#[test]
fn answers_are_data_for_programs() {
    let world = World::new();

    let ran = world.run(&[
        "explain",
        "../.ssh",
        "--host",
        "example.org",
        "--env",
        "PATH",
        "--json",
    ]);

    let parsed: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(parsed["version"], 1);
    insta::assert_snapshot!(ran.golden());
}

#[test]
fn a_question_is_needed() {
    let ran = World::new().run(&["explain"]);

    assert_eq!(ran.code, Some(2));
}

/// No more than is needed: what git runs or obeys stays as it is at the level that commits need.
#[test]
fn the_level_that_is_offered_is_the_lowest_that_helps() {
    let world = World::new();
    world.write("home/project/.git/index", "");
    world.write("home/project/.git/hooks/pre-commit", "");
    for (path, level) in [(".git/index", "write"), (".git/hooks/pre-commit", "full")] {
        let asked = |git: &str| world.run(&["explain", "--git", git, path]).out;
        let told = asked("read");
        assert!(
            told.contains(&format!("to write once:   --git {level}\n")),
            "{told}"
        );
        assert!(asked(level).contains("read, execute and write: "), "{path}");
    }
}

/// Where a name means something else inside, allowing it would change nothing.
#[test]
fn the_loopback_is_the_sessions_own() {
    let world = World::new();
    for host in ["127.0.0.1:5432", "localhost:5432", "[::1]:5432"] {
        let told = world.run(&["explain", "--host", host]).out;
        assert!(told.contains("refused: "), "{told}");
        assert!(
            told.contains("to reach once:   --loopback-out 5432\n"),
            "{told}"
        );
        let line = "\"network\": { \"loopback_out\": [5432] }";
        assert!(told.contains(line), "{told}");
        let told = world
            .run(&["explain", "--loopback-out", "5432", "--host", host])
            .out;
        assert!(told.contains("allowed: flag --loopback-out"), "{told}");
        let told = world.run(&["explain", "--net", "all", "--host", host]).out;
        assert!(told.contains("allowed: flag --net"), "{told}");
    }
}

/// Granting a path that is not there stops every start.
#[test]
fn what_is_not_there_has_to_be_made_before_it_is_granted() {
    let world = World::new();
    let first = "create it first";
    assert!(world.run(&["explain", "../new"]).out.contains(first));
    world.write("home/new", "");
    assert!(!world.run(&["explain", "../new"]).out.contains(first));
    // These name what may be made.
    for path in [".vscode", ".git/x"] {
        assert!(!world.run(&["explain", path]).out.contains(first), "{path}");
    }
}

#[test]
fn a_word_that_names_no_file_is_taken_for_what_it_is() {
    let world = World::new();
    let asked = |word: &str| {
        let mut command = world.command();
        command.args(["explain", word]).env("DATABASE_URL", "x");
        world.ran(&command.output().unwrap()).out
    };
    for (word, begins) in [
        ("http://example.org/foo", "example.org:80\n    refused: "),
        ("example.org:22", "example.org:22\n    refused: "),
        ("192.0.2.1", "192.0.2.1:443\n    refused: "),
        ("localhost:5432", "localhost:5432\n    refused: "),
        ("DATABASE_URL", "DATABASE_URL\n    removed: "),
    ] {
        assert!(asked(word).starts_with(begins), "{}", asked(word));
    }
    // These may be files to come.
    for (word, note) in [
        ("example.org", "--host example.org\n"),
        ("API_TOKEN", "--env API_TOKEN\n"),
        ("docker", "--unix-socket docker"),
    ] {
        let told = asked(word);
        assert!(told.contains("it does not exist; "), "{told}");
        assert!(told.contains(note), "{told}");
    }
    // A file of that name is what is meant.
    for word in ["example.org:22", "DATABASE_URL", "docker"] {
        world.write(format!("home/project/{word}"), "");
        let told = asked(word);
        assert_eq!(
            told,
            format!("{word}\n    read, execute and write: built-in project rule ([PROJECT])\n")
        );
    }
}

/// What no flag gives, and what is not the host's, is said; no line is offered that would not help.
#[test]
#[cfg(target_os = "linux")]
fn nothing_is_offered_that_would_not_give_it() {
    let world = World::new();
    let asked = |path: &str| world.run(&["explain", path]).out;
    for (path, note) in [
        ("/proc/1", "its own processes"),
        ("/dev/mem", "has few devices"),
    ] {
        let told = asked(path);
        assert!(told.contains(note), "{told}");
        assert!(!told.contains("once:"), "{told}");
    }
    assert!(!asked("/dev/null").contains("few devices"));
}

/// A socket cannot be opened, so that no line for reading or writing would help.
#[test]
#[cfg(target_os = "linux")]
fn the_line_for_a_socket_lets_it_be_connected_to() {
    let world = World::new();
    let socket = world.home().join("s");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    let told = world.run(&["explain", "../s"]).out;
    assert!(
        told.contains("to connect once:   --unix-socket [HOME]/s\n"),
        "{told}"
    );
    let connect = "import socket; socket.socket(socket.AF_UNIX).connect('../s')";
    let connects = |flags: &[&str]| {
        let command = ["--", "python3", "-c", connect];
        world.run(&[&["run"], flags, &command[..]].concat())
    };
    let refused = connects(&[]);
    assert_eq!(refused.code, Some(1), "{}", refused.errors);
    let said = "../s is a socket of the host, and was refused: `--unix-socket ../s` allows it\n";
    assert!(refused.errors.ends_with(said), "{}", refused.errors);
    assert!(listener.accept().is_err(), "somebody came through");
    let granted = connects(&["--unix-socket", socket.to_str().unwrap()]);
    assert_eq!(granted.code, Some(0), "{}", granted.errors);
    listener.accept().unwrap();
    let told = world.run(&["explain", "--unix-socket", "../s", "../s"]).out;
    assert!(told.contains("it may be connected to"), "{told}");
    assert!(!told.contains("once:"), "{told}");
}

/// Naming a socket is enough for the programs that look for it in a variable.
#[test]
#[cfg(target_os = "linux")]
fn a_socket_that_is_granted_by_name_is_found() {
    let world = World::new();
    let socket = world.home().join("agent.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    let connect =
        "import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ['SSH_AUTH_SOCK'])";
    let run = |flags: &[&str]| {
        let words = [&["run"], flags, &["--", "python3", "-c", connect]].concat();
        let mut command = world.command();
        command.args(words).env("SSH_AUTH_SOCK", &socket);
        world.ran(&command.output().unwrap())
    };
    assert_eq!(run(&[]).code, Some(1));
    assert!(listener.accept().is_err(), "somebody came through");
    let found = run(&["--unix-socket", "ssh-agent"]);
    assert_eq!(found.code, Some(0), "{}", found.errors);
    listener.accept().unwrap();
}

/// Where the name itself is not there, a line for what lies below it would not let it be made.
#[test]
#[cfg(target_os = "linux")]
fn the_line_for_what_is_not_there_lets_it_be_made() {
    let world = World::new();
    let told = world.run(&["explain", ".vscode/tasks.json"]).out;
    assert!(told.contains("--allow-protected .vscode\n"), "{told}");
    let make = [
        "--",
        "sh",
        "-c",
        "mkdir .vscode && touch .vscode/tasks.json",
    ];
    let refused = world.run(&[&["run"], &make[..]].concat());
    assert_eq!(refused.code, Some(1), "{}", refused.errors);
    let made = world.run(&[&["run", "--allow-protected", ".vscode"], &make[..]].concat());
    assert_eq!(made.code, Some(0), "{}", made.errors);
    let told = world.run(&["explain", ".vscode/tasks.json"]).out;
    assert!(
        told.contains("--allow-protected .vscode/tasks.json\n"),
        "{told}"
    );
}

#[test]
fn a_name_above_a_protected_one_is_not_taken_for_it() {
    let world = World::new();
    for (name, help) in [
        (".github", "name what you mean, such as `.github/"),
        (".cargo", "name what you mean, such as `.cargo/config"),
        (".yarn", "name what you mean, such as `.yarn/"),
        (".git", "use `--git LEVEL`"),
    ] {
        let ran = world.run(&["run", "--allow-protected", name, "--", "true"]);
        assert_eq!(ran.code, Some(2), "{}", ran.errors);
        assert!(ran.errors.contains(help), "{}", ran.errors);
    }
}
