//! 13: reading what the policy hides.

use std::path::PathBuf;

use ringfence_core::plan::Step;
use ringfence_testkit::{CANARY, binaries, case, denied, for_each_user, is_root, op};

#[test]
fn keys_tokens_and_histories_cannot_be_read() {
    for_each_user(binaries!(), |world| {
        let mut cases = Vec::new();
        // Hidden directories are empty; hidden files cannot be opened.
        for inside_hidden in [".ssh/id_canary", ".aws/credentials", ".config/gh/hosts.yml"] {
            cases.push(denied(op!["read", world.home(inside_hidden)], "ENOENT"));
        }
        for hidden in [".netrc", ".bash_history", ".cargo/credentials.toml"] {
            cases.push(denied(op!["read", world.home(hidden)], "EACCES"));
        }
        for hidden in [".ssh", ".aws", ".config/gh"] {
            let shown = world.home(hidden);
            let names = std::fs::read_dir(&shown).unwrap();
            let name = names.last().unwrap().unwrap().file_name();
            let free = format!("ok:{}", name.display());
            cases.push(case(op!["list", shown], &free, "ok:"));
        }
        // What is no secret can be read.
        let plain = world.home(".config/app/plain");
        cases.push(case(op!["read", plain], "ok", "ok"));
        world.check(&world.setup(), &cases);
        let hidden: Vec<_> = cases
            .iter()
            .filter(|case| case.free != case.confined)
            .cloned()
            .collect();
        // The masks are what holds: Landlock cannot take away inside a grant.
        world.check_confined(&world.setup().without(Step::Landlock), &hidden);
        world.mutation(&world.setup().without(Step::Root), &hidden);
    });
}

/// Logins of tools, wallets, state of editors and messengers; and what lies beside a key and is none.
#[test]
fn what_many_tools_keep_cannot_be_read() {
    for_each_user(binaries!(), |world| {
        let files = [
            ".Xauthority",
            ".aider.conf.yml",
            ".android/adbkey",
            ".bunfig.toml",
            ".cache/huggingface/token",
            ".config/pnpm/rc",
            ".config/pypoetry/auth.toml",
            ".config/zsh/.zsh_history",
            ".databrickscfg",
            ".dbt/profiles.yml",
            ".hex/hex.config",
            ".ipython/profile_default/history.sqlite",
            ".local/share/opencode/auth.json",
            ".local/share/opencode/opencode.db",
            ".minikube/ca.key",
            ".ollama/id_ed25519",
            ".pip/pip.conf",
            ".pulumi/credentials.json",
            ".sbt/.credentials",
            ".sentryclirc",
            ".zhistory",
        ];
        let directories = [
            ".bitcoin",
            ".cache/chrome-devtools-mcp",
            ".cache/mozilla",
            ".codeium",
            ".config/Claude",
            ".config/JetBrains",
            ".config/helm",
            ".config/mozilla",
            ".config/opencode",
            ".factory",
            ".foundry/keystores",
            ".local/share/crush",
            ".local/share/zed/threads",
            ".mcp-auth",
            ".pi/agent",
            ".step/secrets",
            ".tsh",
            ".vscode-server/data",
            ".cloudflared",
            ".config/Code",
            ".config/Slack",
            ".config/configstore",
            ".config/google-chrome-beta",
            ".config/solana",
            ".config/stripe",
            ".cursor/chats",
            ".kaggle",
            ".local/share/TelegramDesktop",
            ".local/share/atuin",
            ".local/share/uv/credentials",
            ".local/state/nvim/shada",
            ".minikube/machines",
            ".pki",
            "snap/firefox",
        ];
        let plain = [
            ".cache/huggingface/hub/model",
            ".cache/ms-playwright/chromium/chrome",
            ".condarc",
            ".config/nix/nix.conf",
            ".config/uv/uv.toml",
            ".foundry/bin/forge",
            ".hex/packages/x.tar",
            ".local/share/opencode/worktree/x",
            ".local/share/powershell/Modules/x",
            ".local/share/zed/languages/x",
            ".step/certs/root_ca.crt",
            ".ipython/profile_default/startup.py",
            ".local/share/uv/tools/tool",
            ".minikube/cache/image",
            ".ollama/models/model",
            "snap/rustup/toolchain",
        ];
        let mut paths: Vec<(PathBuf, Option<&str>)> = Vec::new();
        paths.extend(files.map(|file| (world.home(file), Some("EACCES"))));
        let within = |directory: &str| world.home(directory).join("canary");
        paths.extend(directories.map(|directory| (within(directory), Some("ENOENT"))));
        paths.extend(plain.map(|file| (world.home(file), None)));
        let make = || {
            for (path, _) in &paths {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, CANARY).unwrap();
            }
            world.own();
        };
        let cases = paths.iter().map(|(path, errno)| match errno {
            Some(errno) => denied(op!["read", path], errno),
            None => case(op!["read", path], "ok", "ok"),
        });
        let cases: Vec<_> = cases.collect();
        make();
        world.control(&cases);
        make();
        world.check_confined(&world.setup(), &cases);
    });
}

#[test]
fn what_a_strict_policy_does_not_name_does_not_exist() {
    for_each_user(binaries!(), |world| {
        let mut setup = world.setup();
        setup.settings = format!(
            r#"{{"preset": "strict", "terminal": {{"sandbox": {{
                "additional_executable_paths": ["{}"]
            }}}}}}"#,
            world.path("bin").display()
        );
        let paths = [
            world.home(".ssh/id_canary"),
            world.home(".config/app/plain"),
            world.outside("canary"),
            world.path("other/src/canary"),
        ];
        let refused = |errno: &str| {
            let paths = paths.iter();
            let cases = paths.map(|path| denied(op!["read", path], errno));
            cases.collect::<Vec<_>>()
        };
        world.check(&setup, &refused("ENOENT"));
        // Both layers claim it: each holds alone.
        let mounts = setup.clone().without(Step::Landlock);
        world.check_confined(&mounts, &refused("ENOENT"));
        let landlock = setup.without(Step::Root);
        world.check_confined(&landlock, &refused("EACCES"));
    });
}

#[test]
fn the_machines_own_secrets_cannot_be_read() {
    for_each_user(binaries!(), |world| {
        // What only root may read is no proof for a plain user; there the kernel refuses anyway.
        let free = if world.ids().0 == 0 { "ok" } else { "EACCES" };
        let shadow = case(op!["read", "/etc/shadow"], free, "EACCES");
        world.check(&world.setup(), &[shadow]);
        let root_home = if is_root() { "/root" } else { "/home" };
        let listed = world.inside(&world.setup(), ["list", root_home]);
        assert_eq!(listed.line(), "ok:", "homes of others are empty");
    });
}

#[test]
fn nothing_that_searches_finds_the_canary() {
    for_each_user(binaries!(), |world| {
        let search = format!("grep -r {CANARY} {} || true", world.home(".").display());
        let free = ringfence_testkit::Done::of(world.command("sh").args(["-c", &search]));
        assert!(free.text().contains(".ssh/id_canary"), "{}", free.text());
        let setup = world.setup();
        let mut confined = world.confine(&setup, ["sh", "-c", &search]);
        let text = ringfence_testkit::Done::of(&mut confined).text();
        assert!(text.contains(".config/app/plain"), "{text}");
        for secret in [
            ".ssh",
            ".aws",
            ".netrc",
            "history",
            "credentials",
            "hosts.yml",
        ] {
            assert!(!text.contains(secret), "{secret} was found: {text}");
        }
    });
}
