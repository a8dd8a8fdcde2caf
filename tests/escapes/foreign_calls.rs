//! 68: system calls through another architecture's door.
#![cfg(target_arch = "x86_64")]

use ringfence_core::plan::Step;
use ringfence_testkit::{Done, binaries, case, for_each_user, not_run, op};

/// `getpid` of 32-bit programs.
const GETPID_32: &str = "20";

#[test]
fn thirty_two_bit_calls_end_the_caller() {
    for_each_user(binaries!(), |world| {
        let call = op!["interrupt", GETPID_32];
        let free = world.probe(&call);
        let works = free.line() == "ok";
        if !works {
            not_run("ia32, to show that the door is open without a sandbox");
        }
        let killed = format!("ok:killed {}", libc::SIGSYS);
        world.check_confined(&world.setup(), &[case(&call, "", &killed)]);
        if works {
            let open = world.inside(&world.setup().without(Step::Seccomp), &call);
            assert_eq!(open.line(), "ok");
        }
    });
}

#[test]
fn numbers_with_the_x32_bit_are_unknown() {
    for_each_user(binaries!(), |world| {
        for number in [0, 1, 2, 39, 41, 56, 59, 165, 272, 321, 520, 545] {
            let call = op!["x32", number.to_string(), "-1", "-1", "-1"];
            world.check_confined(&world.setup(), &[case(call, "", "ENOSYS")]);
        }
    });
}

/// A whole 32-bit program, where a compiler for one is at hand.
#[test]
fn a_thirty_two_bit_program_does_not_run() {
    for_each_user(binaries!(), |world| {
        let (source, program) = (world.project("exit.s"), world.path("other/exit"));
        // exit(7), by interrupt.
        let text = ".globl _start\n_start: mov $1, %eax\nmov $7, %ebx\nint $0x80\n";
        std::fs::write(&source, text).unwrap();
        let object = world.project("exit.o");
        let assembled = std::process::Command::new("as")
            .arg("--32")
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .status();
        let linked = std::process::Command::new("ld")
            .args(["-m", "elf_i386"])
            .arg(&object)
            .arg("-o")
            .arg(&program)
            .status();
        if !(assembled.is_ok_and(|done| done.success()) && linked.is_ok_and(|done| done.success()))
        {
            not_run("binutils, for a 32-bit program");
            return;
        }
        let free = Done::of(&mut world.command(&program));
        if free.status != 7 {
            not_run("ia32, to show that 32-bit programs run without a sandbox");
        }
        let done = world.run(&world.setup(), [&program]);
        assert_eq!(done.status, 128 + libc::SIGSYS);
    });
}
