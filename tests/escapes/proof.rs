//! 12, 66, 76, 77, 159: what the kernel itself says about a process inside.

use ringfence_testkit::{binaries, case, for_each_user, op};

const SEALED: &str = "ok:CapInh:0000000000000000 CapPrm:0000000000000000 CapEff:0000000000000000 \
                      CapBnd:0000000000000000 CapAmb:0000000000000000 NoNewPrivs:1 Seccomp:2 \
                      Seccomp_filters:1";

#[test]
fn every_process_and_thread_is_sealed() {
    for_each_user(binaries!(), |world| {
        let free = world.probe(["status"]);
        assert_ne!(free.line(), SEALED);
        assert!(free.line().contains("NoNewPrivs:0"), "{}", free.line());
        let probe = world.path("bin/probe");
        let loader = "/lib64/ld-linux-x86-64.so.2";
        let mut cases = vec![
            case(op!["status"], "", SEALED),
            case(op!["status-of-threads"], "", SEALED),
            // However a program is started: by another, by the loader.
            case(
                op!["run", &probe, "status"],
                "",
                &format!("ok:{SEALED} [0]"),
            ),
        ];
        if cfg!(target_arch = "x86_64") {
            let run = op!["run", loader, &probe, "status"];
            cases.push(case(run, "", &format!("ok:{SEALED} [0]")));
        }
        // Last: it becomes another program.
        cases.push(case(op!["exec-memory", "status"], "", SEALED));
        world.check_confined(&world.setup(), &cases);
        // Also from a launcher with threads, and from another sandbox's child.
        let mut threaded = world.setup();
        threaded.threads = true;
        world.check_confined(&threaded, &cases);
    });
}

#[test]
fn a_copy_in_the_private_directory_is_sealed_too() {
    for_each_user(binaries!(), |world| {
        let probe = world.path("bin/probe");
        let script = format!("cp {} /tmp/copy && /tmp/copy status", probe.display());
        let done = world.run(&world.setup(), ["sh", "-c", &script]);
        assert_eq!(done.line(), SEALED);
    });
}

#[test]
fn every_namespace_is_new() {
    for_each_user(binaries!(), |world| {
        let names = |line: &str| {
            let line = line.strip_prefix("ok:").unwrap();
            line.split(' ').map(str::to_owned).collect::<Vec<_>>()
        };
        let free = names(world.probe(["namespaces"]).line());
        let inside = names(world.inside(&world.setup(), ["namespaces"]).line());
        assert_eq!(free.len(), 7);
        for (free, inside) in free.iter().zip(&inside) {
            assert_ne!(free, inside);
        }
    });
}

#[test]
fn the_user_stays_the_same() {
    for_each_user(binaries!(), |world| {
        let (uid, _) = world.ids();
        let expected = format!("ok:{uid} {uid}");
        world.check(&world.setup(), &[case(op!["ids"], &expected, &expected)]);
    });
}
