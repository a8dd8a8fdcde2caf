//! 60: variables.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use ringfence_testkit::{Done, binaries, for_each_user};

const SECRETS: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "NPM_TOKEN",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "GPG_TTY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "TMUX",
    "STY",
    "VSCODE_IPC_HOOK_CLI",
    "KUBECONFIG",
    "DOCKER_HOST",
    "GIT_DIR",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_COUNT",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "NODE_OPTIONS",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PERL5OPT",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "HTTP_PROXY",
    "https_proxy",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "PATHX",
    "HOMEX",
    "path",
    "PGPASSWORD",
    "NPM_CONFIG_USERCONFIG",
    "VAULT_TOKEN",
];

#[test]
fn only_the_listed_variables_pass() {
    for_each_user(binaries!(), |world| {
        let setup = world.setup();
        let probe = world.path("bin/probe");
        let mut command = world.confine(&setup, [probe.as_os_str(), OsStr::new("environment")]);
        for name in SECRETS {
            // Nothing that would change how the launcher itself is loaded.
            command.env(name, "/nonexistent");
        }
        command.env(OsStr::from_bytes(b"NOT\xffTEXT"), "x");
        command.env("WITH\nNEWLINE", "x");
        command
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "dumb")
            .env("CI", "1");
        let done = Done::of(&mut command);
        assert_eq!(done.line(), "ok:CI HOME LANG LC_ALL PATH TERM");
    });
}

#[test]
fn an_empty_list_passes_nothing() {
    for_each_user(binaries!(), |world| {
        let root = world.path("");
        let setup = world.setup().settings(format!(
            r#"{{"terminal": {{"sandbox": {{
                "allowed_env_vars": [], "additional_executable_paths": [{root:?}]
            }}}}}}"#
        ));
        let done = world.inside(&setup, ["environment"]);
        assert_eq!(done.line(), "ok:");
    });
}

#[test]
fn what_is_set_is_set_once() {
    for_each_user(binaries!(), |world| {
        let setup = world.setup_with(r#""env": {"set": {"LANG": "set"}}"#);
        // The launcher has one of its own.
        let done = world.run(
            &setup,
            ["sh", "-c", "tr '\\0' '\\n' </proc/$$/environ | grep ^LANG="],
        );
        assert_eq!(done.lines, ["LANG=set"], "{}", done.stderr);
    });
}
