#!/usr/bin/env python3
"""Ringfence beside what users would pick instead, in one run, as ratios.

Rounds are interleaved, so that whatever else the machine does falls on everybody alike. Only the
ratios within one run mean anything; times are printed beside them. What is not installed is left
out and named.

    cargo build --release --target x86_64-unknown-linux-musl -p ringfence-cli
    python3 benches/run.py --ringfence target/x86_64-unknown-linux-musl/release/ringfence

With --library target/.../release/examples/timed (`cargo build ... -p ringfence --example timed`) the start-up of
sessions from a program that runs already is measured as well.

Run as root with --as-user NAME, everything is measured twice: as root, and as that plain user.
"""

import argparse
import json
import os
import platform
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

from bench import cleanup, document, floor, gate, measure, peers, scale, shell, startup, steady, table

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(os.path.dirname(HERE), "docs", "BENCHMARKS.md")
SCENARIOS = {
    "startup": startup.scenario,
    "floor": floor.scenario,
    "steady": steady.scenario,
    "cleanup": cleanup.scenario,
    "shell": shell.scenario,
    "gate": gate.scenario,
    "scale": scale.scenario,
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ringfence", required=True, help="the binary to measure")
    parser.add_argument("--library", help="the example `timed`, to measure sessions of a program that runs already")
    parser.add_argument("--only", help=f"some scenarios: {', '.join(SCENARIOS)}")
    parser.add_argument("--rounds", type=int, default=200, help="of what is fast; slow scenarios take fewer (200)")
    parser.add_argument("--files", type=int, default=100_000, help="in the tree that is walked (100,000)")
    parser.add_argument("--as-user", metavar="NAME", help="measure as this user too; only root can")
    parser.add_argument("--json", metavar="FILE", help="write every number")
    parser.add_argument("--svg", metavar="DIR", help="draw the charts")
    parser.add_argument("--document", action="store_true", help="write tables and charts into docs/")
    parser.add_argument("--smoke", action="store_true", help="two rounds of everything: fails on broken output, not on time")
    parser.add_argument("--install", action="store_true", help=f"install {' and '.join(peers.PACKAGES)} first")
    return parser.parse_args()


def build(directory):
    """The programs written in C: static, by the smallest libc there is."""
    compiler = shutil.which("musl-gcc") or shutil.which("cc")
    if not compiler:
        sys.exit("no C compiler: install gcc or musl-tools")
    tools = {}
    for name in ("floor", "probe"):
        tools[name] = os.path.join(directory, name)
        source = os.path.join(HERE, f"{name}.c")
        subprocess.run([compiler, "-static", "-O2", "-Wall", "-Wextra", "-o", tools[name], source], check=True)
    return tools, os.path.basename(compiler)


def version(*argv):
    if not shutil.which(argv[0]):
        return "not installed"
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    return (done.stdout or done.stderr).strip().splitlines()[0]


def machine(ringfence, compiler, rounds):
    processor = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                processor = line.split(":", 1)[1].strip()
                break
    return {
        "when": time.strftime("%Y-%m-%d", time.gmtime()),
        "kernel": platform.release(),
        "processor": f"{processor}, {os.cpu_count()} of them",
        "load at the start": f"{os.getloadavg()[0]:.1f}",
        "rounds": rounds,
        "ringfence": version(ringfence, "--version"),
        "bubblewrap": version("bwrap", "--version"),
        "firejail": version("firejail", "--version"),
        "the floor's compiler": compiler,
    }


def answers(bench, names):
    """Every scenario's answers; each is printed as soon as it is known."""
    found = []
    for name in names:
        began = time.monotonic()
        for answer in SCENARIOS[name](bench):
            answer["scenario"] = name
            found.append(answer)
            print(table.text(answer), flush=True)
        measure.say(f"-- {name}: {time.monotonic() - began:.1f}s")
    return found


def measured(options, names, tools, binary):
    """One run as whoever this is, in a project of its own."""
    with tempfile.TemporaryDirectory(prefix="ringfence-bench-") as project:
        before = os.getcwd()
        os.chdir(project)
        # Confined commands see no /tmp but their own, and the project.
        tools = {**tools, "probe": shutil.copy(tools["probe"], os.path.join(project, "probe"))}
        try:
            bench = measure.Bench(binary, project, tools, options.rounds, options.smoke, options.files)
            bench.library = options.library
            return answers(bench, names)
        finally:
            os.chdir(before)


def as_user(options, names, tools, binary, shared):
    """The same run by a plain user, in a process of that user's from the start."""
    user = pwd.getpwnam(options.as_user)
    copy = os.path.join(shared, "benches")
    shutil.copytree(HERE, copy)
    with tempfile.TemporaryDirectory(prefix="ringfence-bench-out-") as place:
        os.chown(place, user.pw_uid, user.pw_gid)
        out = os.path.join(place, "result.json")
        argv = ["setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups"]
        # The system's own tools: root's may lie where no other user comes.
        argv += ["env", "-i", f"HOME={user.pw_dir}", f"PATH={os.defpath}", "LANG=C.UTF-8"]
        argv += ["/usr/bin/python3", os.path.join(copy, "run.py"), "--ringfence", binary, "--only", ",".join(names)]
        argv += ["--rounds", str(options.rounds), "--files", str(options.files), "--json", out]
        print(f"as {options.as_user}\n", flush=True)
        argv += ["--library", options.library] if options.library else []
        subprocess.run([*argv, *(["--smoke"] if options.smoke else [])], check=True, cwd=place)
        with open(out, encoding="utf-8") as file:
            return json.load(file)["runs"][0]["answers"]


def main():
    options = arguments()
    names = options.only.split(",") if options.only else list(SCENARIOS)
    if unknown := [name for name in names if name not in SCENARIOS]:
        sys.exit(f"no such scenario: {', '.join(unknown)}")
    if options.as_user and os.geteuid() != 0:
        sys.exit("--as-user needs root")
    if options.install:
        peers.install()
    with tempfile.TemporaryDirectory(prefix="ringfence-bench-tools-") as shared:
        os.chmod(shared, 0o755)
        binary = shutil.copy(options.ringfence, os.path.join(shared, "ringfence"))
        if options.library:
            options.library = shutil.copy(options.library, os.path.join(shared, "timed"))
        tools, compiler = build(shared)
        result = {"version": 1, "machine": machine(binary, compiler, options.rounds), "runs": []}
        try:
            who = "root" if os.geteuid() == 0 else "a plain user"
            result["runs"].append({"as": who, "answers": measured(options, names, tools, binary)})
        except measure.Broken as broken:
            sys.exit(str(broken))
        if options.as_user:
            found = as_user(options, names, tools, binary, shared)
            result["runs"].append({"as": "a plain user", "answers": found})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2, ensure_ascii=False)
    if options.svg:
        document.charts(result, options.svg)
    if options.smoke:
        smoke(result, names)
    if options.document:
        with open(PAGE, encoding="utf-8") as file:
            text = document.fill(file.read(), result, SCENARIOS)
        document.charts(result, os.path.join(os.path.dirname(PAGE), "charts"))
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(text)


def smoke(result, names):
    """Everything a real run would write can be written, and the page has room for it."""
    from xml.dom import minidom

    for run in result["runs"]:
        if {answer["scenario"] for answer in run["answers"]} != set(names):
            sys.exit("a scenario gave no answer")
        for answer in run["answers"]:
            minidom.parseString(document.chart.draw(answer))
    if os.path.exists(PAGE):
        with open(PAGE, encoding="utf-8") as file:
            filled = document.fill(file.read(), json.loads(json.dumps(result)), SCENARIOS)
        if document.missing(filled, [*SCENARIOS, "machine"]):
            sys.exit("docs/BENCHMARKS.md does not survive being filled")
    print("smoke: every scenario answered")


if __name__ == "__main__":
    main()
