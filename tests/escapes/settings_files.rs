//! 1, 4, 6: what files say. An empty list allows nothing, the project's file only narrows, and what
//! nobody understands is refused.

use ringfence_testkit::{Listeners, binaries, case, denied, for_each_user, op};

#[test]
fn an_empty_list_of_hosts_allows_none() {
    for_each_user(binaries!(), |world| {
        let listeners = Listeners::start(&world.project(""));
        let cases = [denied(op!["tcp", &listeners.tcp[0]], "ECONNREFUSED")];
        world.control(&cases);
        assert_eq!(listeners.arrived.settled(), 1);
        for keys in [
            r#""network": {"hosts": []}"#,
            r#""network": {"mode": "hosts", "hosts": []}"#,
            r#""agent": {"sandbox_permissions": {"network_hosts": []}}"#,
        ] {
            let setup = world.setup_with(keys);
            world.check_confined(&setup, &cases);
            let far = case(op!["tcp", "192.0.2.1:80"], "", "ENETUNREACH");
            world.check_confined(&setup, &[far]);
        }
        assert_eq!(listeners.arrived.settled(), 1, "nobody came");
    });
}

#[test]
fn the_projects_file_cannot_widen() {
    for_each_user(binaries!(), |world| {
        let listeners = Listeners::start(&world.project(""));
        let outside = world.outside("");
        let mut setup = world.setup();
        setup.project_settings = Some(format!(
            r#"{{
                "preset": "track", "tmp": "host", "git": "full", "on_gap": "report",
                "terminal": {{"sandbox": {{
                    "enabled": false, "apply_to": "neither", "allow_network": true,
                    "additional_read_write_paths": [{outside:?}],
                    "allowed_env_vars": ["SECRET*"]
                }}}},
                "agent": {{"sandbox_permissions": {{
                    "allow_all_hosts": true, "allow_fs_write_all": true, "allow_unsandboxed": true
                }}}},
                "env": {{"allow": ["SECRET"]}},
                "secrets": {{"show": [{:?}]}},
                "network": {{"mode": "all"}},
                "protect": {{"allow": [".vscode"]}}
            }}"#,
            world.home(".ssh")
        ));
        std::fs::write(world.project(".env"), "RINGFENCE_RW=/\n").unwrap();
        world.own();
        let cases = [
            denied(op!["write", world.outside("canary")], "EROFS"),
            denied(op!["read", world.home(".ssh/id_canary")], "ENOENT"),
            denied(op!["tcp", &listeners.tcp[0]], "ECONNREFUSED"),
            case(op!["variable", "SECRET"], "ok", "ok"),
        ];
        world.check(&setup, &cases);
        assert_eq!(listeners.arrived.settled(), 1, "only the control came");
        // The same words in the user's own file do widen, so they are the right words.
        setup.settings = setup.project_settings.take().unwrap();
        let free = world.inside(&setup, op!["write", world.outside("canary")]);
        assert_eq!(free.line(), "ok");
        world.restore();
    });
}

#[test]
fn what_nobody_understands_is_refused() {
    for_each_user(binaries!(), |world| {
        for wrong in [
            r#"{"secrets": {"hid": []}}"#,
            r#"{"preset": "agnet"}"#,
            r#"{"terminal": {"sandbox": {"allow_network": "no"}}}"#,
            r#"{"git": "hidden""#,
        ] {
            let setup = world.setup().settings(wrong);
            let done = world.run(&setup, ["true"]);
            assert_eq!(done.status, 125, "{wrong}");
            assert!(!done.stderr.is_empty());
        }
    });
}
