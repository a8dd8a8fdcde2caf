//! Work that people do all day, inside, with the preset for agents and no more flags than somebody
//! would guess. A sandbox that is in the way gets switched off.
#![cfg(target_os = "linux")]

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use ringfence_testkit::{Done, Setup, World, binaries, for_each_user, not_run};

    /// Runs a script inside, in the project, and wants it to end well.
    #[track_caller]
    fn works(world: &World, setup: &Setup, script: &str) -> Done {
        let mut command = world.confine(setup, ["bash", "-euo", "pipefail", "-c", script]);
        command.env("TERM", "dumb").env("USER", "somebody");
        let done = Done::of(&mut command);
        done.assert_status(0);
        done
    }

    /// Whether a program is on this machine, where the user of this world can run it.
    fn has(world: &World, program: &str) -> bool {
        let found = Done::of(world.command(program).arg("--version")).status == 0;
        if !found {
            not_run(program);
        }
        found
    }

    /// `Command` panics where there is no such program; ask the shell instead.
    fn installed(world: &World, program: &str) -> bool {
        let script = format!("command -v {program} >/dev/null");
        let found = Done::of(world.command("sh").args(["-c", &script])).status == 0;
        if !found {
            not_run(program);
        }
        found && has(world, program)
    }

    #[test]
    fn shell_scripts() {
        for_each_user(binaries!(), |world| {
            let done = works(
                world,
                &world.setup(),
                r#"
                printf '%s\n' c a b | sort | tr '\n' ' '; echo
                diff <(seq 3) <(printf '1\n2\n3\n') && echo same
                tee >(wc -c >count) <README >/dev/null; until [ -s count ]; do sleep 0.1; done; cat count
                (exit 7) || echo "status $?"
                sleep 5 & kill %1; wait %1 || echo "killed $?"
                trap 'echo trapped' TERM; kill -TERM $$
                cat <<< here
                mkdir -p deep/er; cd deep; pwd | xargs basename
                echo x > /tmp/file; cat /tmp/file; echo "$HOME" | xargs basename
                ulimit -n >/dev/null; umask
                "#,
            );
            let expected = [
                "a b c ",
                "same",
                "8",
                "status 7",
                "killed 143",
                "trapped",
                "here",
                "deep",
                "x",
                "home",
                "0022",
            ];
            assert_eq!(done.lines, expected, "{}", done.stderr);
            // A pipe that root made cannot be opened again by a plain user, here as anywhere.
            let again = [
                "-c",
                "echo err >/dev/stderr; cat /dev/fd/0; echo ok >/dev/stdout",
            ];
            let free = Done::of(world.command("bash").args(again));
            let mut confined = world.confine(&world.setup(), ["bash"]);
            let confined = Done::of(confined.args(again));
            let seen = |done: &Done| (done.status, done.text(), done.stderr.clone());
            assert_eq!(seen(&free), seen(&confined));
        });
    }

    #[test]
    fn exit_codes_and_streams_are_the_commands_own() {
        for_each_user(binaries!(), |world| {
            let run = |arguments: &[&str]| world.run(&world.setup(), arguments);
            assert_eq!(run(&["sh", "-c", "exit 42"]).status, 42);
            assert_eq!(run(&["sh", "-c", "kill -KILL $$"]).status, 137);
            assert_eq!(run(&["no-such-program"]).status, 127);
            assert_eq!(run(&["./README"]).status, 126);
            let both = run(&["sh", "-c", "echo out; echo err >&2"]);
            assert_eq!(
                (both.text().as_str(), both.stderr.as_str()),
                ("out", "err\n")
            );
            let odd = run(&["printf", "%s", "a b\u{7f}*$(x)"]);
            assert_eq!(odd.text(), "a b\u{7f}*$(x)");
            // Standard output to a file, and from one.
            let file = world.outside("output");
            let mut command =
                world.confine(&world.setup(), ["sh", "-c", "cat; echo two > /dev/stdout"]);
            command.stdin(fs::File::open(world.project("README")).unwrap());
            let output = fs::File::create(&file).unwrap();
            world.own();
            let status = command.stdout(output).status().unwrap();
            assert!(status.success());
            assert!(fs::read_to_string(&file).unwrap().contains("two"));
        });
    }

    #[test]
    fn a_compiler_and_make() {
        for_each_user(binaries!(), |world| {
            if !(installed(world, "gcc") && installed(world, "make")) {
                return;
            }
            let write = |name: &str, text: &str| fs::write(world.project(name), text).unwrap();
            write("half.c", "int half(int n) { return n / 2; }\n");
            write(
                "main.c",
                "#include <stdio.h>\n#include <pthread.h>\nint half(int);\n\
                 static void *run(void *p) { return p; }\n\
                 int main(void) { pthread_t t; pthread_create(&t, 0, run, 0); pthread_join(t, 0);\n\
                 printf(\"%d\\n\", half(84)); return 0; }\n",
            );
            write(
                "Makefile",
                "main: main.o half.o\n\tgcc -pthread -o $@ $^\n%.o: %.c\n\tgcc -O2 -g -c $<\n\
                 test: main\n\t./main\n.PHONY: test\n",
            );
            world.own();
            let done = works(
                world,
                &world.setup(),
                "make -s -j4 test; touch half.c; make -s test",
            );
            assert_eq!(done.lines, ["42", "42"]);
        });
    }

    /// An interpreter of the system's, which every user can run.
    const PYTHON: &str = "/usr/bin/python3";

    #[test]
    fn python_with_environments_and_processes() {
        for_each_user(binaries!(), |world| {
            if !Path::new(PYTHON).try_exists().unwrap() {
                not_run("python3, the system's own");
                return;
            }
            fs::write(
                world.project("work.py"),
                "import multiprocessing, os, sqlite3, tempfile, threading, subprocess\n\
                 def square(n): return n * n\n\
                 if __name__ == '__main__':\n\
                 \x20   multiprocessing.set_start_method('fork')\n\
                 \x20   with multiprocessing.Pool(4) as pool: print(sum(pool.map(square, range(100))))\n\
                 \x20   queue = multiprocessing.Queue(); queue.put(1); print(queue.get())\n\
                 \x20   with tempfile.NamedTemporaryFile() as file: print(file.name.startswith('/tmp/'))\n\
                 \x20   base = sqlite3.connect('work.db'); base.execute('create table t (n)')\n\
                 \x20   base.executemany('insert into t values (?)', [(n,) for n in range(10)]); base.commit()\n\
                 \x20   print(base.execute('select sum(n) from t').fetchone()[0])\n\
                 \x20   print(subprocess.run(['echo', 'sub'], capture_output=True, text=True).stdout.strip())\n",
            )
            .unwrap();
            world.own();
            let done = works(world, &world.setup(), &format!("{PYTHON} work.py"));
            assert_eq!(done.lines, ["328350", "1", "True", "45", "sub"]);
            let venv = Done::of(world.command(PYTHON).args(["-c", "import ensurepip"]));
            let pip = if venv.status == 0 {
                ""
            } else {
                not_run("ensurepip, for pip in an environment");
                "--without-pip"
            };
            let script = format!(
                "{PYTHON} -m venv {pip} env && . env/bin/activate && python -c 'import sys; print(sys.prefix != sys.base_prefix)'"
            );
            let done = works(world, &world.setup(), &script);
            assert_eq!(done.lines, ["True"]);
        });
    }

    /// Writes a wheel with one module: an archive with three files of text.
    const WHEEL: &str = "import zipfile\n\
        name = 'halver-1.0.dist-info/'\n\
        with zipfile.ZipFile('halver-1.0-py3-none-any.whl', 'w') as wheel:\n\
        \x20   wheel.writestr('halver.py', 'def half(n):\\n    return n // 2\\n')\n\
        \x20   wheel.writestr(name + 'METADATA', 'Metadata-Version: 2.1\\nName: halver\\nVersion: 1.0\\n')\n\
        \x20   wheel.writestr(name + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        \x20   wheel.writestr(name + 'RECORD', '')\n";

    #[test]
    fn pip_installs_a_wheel_and_pytest_uses_it() {
        for_each_user(binaries!(), |world| {
            let needed = ["-c", "import ensurepip, pytest"];
            if Done::of(world.command(PYTHON).args(needed)).status != 0 {
                not_run("ensurepip and pytest of the system's python3");
                return;
            }
            fs::write(world.project("wheel.py"), WHEEL).unwrap();
            fs::write(
                world.project("test_work.py"),
                "import halver\ndef test_half(tmp_path):\n    (tmp_path / 'out').write_text(str(halver.half(84)))\n    \
                 assert (tmp_path / 'out').read_text() == '42'\n",
            )
            .unwrap();
            world.own();
            let script = format!(
                "{PYTHON} wheel.py && {PYTHON} -m venv --system-site-packages env && . env/bin/activate\n\
                 pip install --quiet --disable-pip-version-check --no-index halver-1.0-py3-none-any.whl\n\
                 python -m pytest -q test_work.py"
            );
            let done = works(world, &world.setup(), &script);
            let passed = done.lines.iter().any(|line| line.starts_with("1 passed"));
            assert!(passed, "{:?} {}", done.lines, done.stderr);
        });
    }

    #[test]
    fn npm_installs_what_is_locked_and_tests() {
        for_each_user(binaries!(), |world| {
            if !installed(world, "npm") {
                return;
            }
            for (file, text) in [
                ("dep/package.json", r#"{"name":"halver","version":"1.0.0"}"#),
                ("dep/index.js", "module.exports = (n) => n / 2;"),
                (
                    "package.json",
                    r#"{"name":"work","version":"1.0.0","scripts":{"test":"node --test"},
                        "dependencies":{"halver":"file:halver-1.0.0.tgz"}}"#,
                ),
                (
                    "work.test.js",
                    "const test = require('node:test'); const assert = require('node:assert');\n\
                     test('halves', () => assert.equal(require('halver')(84), 42));\n",
                ),
            ] {
                let path = world.project(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            world.own();
            // The lock file and the cache are the host's work.
            let host = "set -e; cd dep; npm pack --silent --offline --pack-destination ..; cd ..; rm -r dep\n\
                        npm install --silent --package-lock-only --offline";
            let mut command = world.command("sh");
            Done::of(command.args(["-c", host]).current_dir(world.project(""))).assert_status(0);
            let done = works(world, &world.setup(), "npm ci --offline && npm test");
            assert!(
                done.stderr.is_empty(),
                "npm is not content: {}",
                done.stderr
            );
            assert!(world.project("node_modules/halver/index.js").is_file());
        });
    }

    #[test]
    fn node() {
        for_each_user(binaries!(), |world| {
            if !installed(world, "node") {
                return;
            }
            fs::write(
                world.project("work.mjs"),
                "import fs from 'node:fs/promises';\n\
                 import http from 'node:http';\n\
                 import { execFile } from 'node:child_process';\n\
                 import { Worker } from 'node:worker_threads';\n\
                 import { promisify } from 'node:util';\n\
                 await fs.writeFile('out.txt', 'written');\n\
                 console.log((await fs.readFile('out.txt')).toString());\n\
                 console.log((await promisify(execFile)('echo', ['child'])).stdout.trim());\n\
                 const server = http.createServer((_, answer) => answer.end('served'));\n\
                 await new Promise((done) => server.listen(0, '127.0.0.1', done));\n\
                 const url = `http://127.0.0.1:${server.address().port}/`;\n\
                 console.log(await (await fetch(url)).text());\n\
                 server.close(); server.closeAllConnections();\n\
                 const worker = new Worker(\"require('worker_threads').parentPort.postMessage('thread')\", { eval: true });\n\
                 console.log(await new Promise((done) => worker.on('message', done)));\n\
                 process.exit(0);\n",
            )
            .unwrap();
            world.own();
            let done = works(world, &world.setup(), "node work.mjs");
            assert_eq!(
                done.lines,
                ["written", "child", "served", "thread"],
                "{}",
                done.stderr
            );
            let test = "import test from 'node:test'; import assert from 'node:assert';\n\
                        test('adds', () => assert.equal(1 + 1, 2));\n";
            fs::write(world.project("work.test.mjs"), test).unwrap();
            world.own();
            works(world, &world.setup(), "node --test work.test.mjs");
        });
    }

    #[test]
    fn cargo_builds_and_tests() {
        for_each_user(binaries!(), |world| {
            // The toolchain that runs this test, wherever it lies.
            let cargo = Path::new(env!("CARGO"));
            let Some(bin) = cargo.parent() else {
                return not_run("cargo");
            };
            let toolchain = bin.parent().unwrap();
            let reachable = Done::of(world.command("test").arg("-x").arg(cargo));
            if reachable.status != 0 {
                return not_run("cargo that this user can run");
            }
            fs::create_dir_all(world.project("src")).unwrap();
            fs::write(
                world.project("Cargo.toml"),
                // A workspace of its own: the world may lie below another one's.
                "[package]\nname = \"work\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
            )
            .unwrap();
            fs::write(
                world.project("src/lib.rs"),
                "//! Work.\n/// ```\n/// assert_eq!(work::half(4), 2);\n/// ```\npub fn half(n: u32) -> u32 { n / 2 }\n\
                 #[test]\nfn halves() { assert_eq!(half(84), 42); }\n",
            )
            .unwrap();
            world.own();
            // A toolchain in a home that is not the caller's has to be shown, as anybody would.
            let settings = format!(
                r#"{{"terminal": {{"sandbox": {{"additional_executable_paths": [{:?}, {:?}]}}}},
                    "env": {{"set": {{"PATH": "{}:/usr/bin:/bin"}}}}}}"#,
                world.path(""),
                toolchain,
                bin.display(),
            );
            let setup = world.setup().settings(settings);
            let done = works(
                world,
                &setup,
                "cargo build --offline -q && cargo test --offline -q 2>&1",
            );
            assert!(done.text().contains("1 passed"), "{}", done.text());
        });
    }

    #[test]
    fn git_with_its_metadata_granted() {
        for_each_user(binaries!(), |world| {
            if !installed(world, "git") {
                return;
            }
            let setup = world.setup_with(r#""git": "full""#);
            let done = works(
                world,
                &setup,
                "git init -q -b main . && git config user.name A && git config user.email a@example.org
                 git add README && git commit -q -m first
                 echo more >> README && git commit -q -am second
                 git checkout -q -b side && git mv README READ && git commit -q -m third
                 git log --oneline | wc -l; git status --short | wc -l; git gc -q; git fsck 2>/dev/null; git diff HEAD~1 --stat | tail -1",
            );
            assert_eq!(done.lines[..2], ["3", "1"], "{}", done.text());
        });
    }

    #[test]
    fn large_files_and_many_files() {
        for_each_user(binaries!(), |world| {
            let done = works(
                world,
                &world.setup(),
                "truncate -s 2G sparse && stat -c %s sparse
                 head -c 64M /dev/zero > real && stat -c %s real
                 dd if=/dev/zero of=sparse bs=1M seek=2040 count=8 conv=notrunc status=none
                 mkdir many && cd many && seq 10000 | xargs touch
                 find . -type f | wc -l; ls | wc -l; cd .. && rm -r many sparse real && echo gone",
            );
            assert_eq!(
                done.lines,
                ["2147483648", "67108864", "10000", "10000", "gone"]
            );
        });
    }

    #[test]
    fn a_server_and_its_client() {
        for_each_user(binaries!(), |world| {
            if !(Path::new(PYTHON).try_exists().unwrap() && installed(world, "curl")) {
                return;
            }
            let done = works(
                world,
                &world.setup(),
                &format!(
                    "{PYTHON} -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 &
                     for i in $(seq 1000); do curl -sf http://127.0.0.1:8000/README && break; sleep 0.05; done
                     curl -sf http://localhost:8000/README"
                ),
            );
            assert_eq!(done.lines, ["project", "project"]);
        });
    }
}
