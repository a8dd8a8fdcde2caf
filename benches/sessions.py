#!/usr/bin/env python3
"""How a session ends, what its supervisor weighs, and what being written down costs.

Side by side with what users would pick instead, interleaved, so that whatever else the machine does
falls on everybody alike; what counts are the ratios within one run.

    cargo build --release --target x86_64-unknown-linux-musl -p ringfence-cli
    python3 benches/sessions.py --ringfence target/x86_64-unknown-linux-musl/release/ringfence

    --daemons N    how many daemons, forked twice and in sessions of their own (default 1000)
    --rounds N     how often each kind of session ends (default 5)
    --starts N     how often a start is measured with and without a place to write it down (default 200)
    --check        fail if 1000 daemons take a second, or a supervisor more than 4 MiB
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def with_argument(word):
    """Processes that were started with this argument."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if word.encode() in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                pass
    return found


def end(argv, project, odd, how_many, ender):
    """Milliseconds from the request to the end until nobody is left."""
    script = f"i=0; while [ $i -lt {how_many} ]; do setsid -f sleep {odd} </dev/null >/dev/null 2>&1; i=$((i+1)); done; echo ready; read line"
    child = subprocess.Popen(
        argv + ["sh", "-c", script], cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    if child.stdout.readline() != b"ready\n":
        sys.exit(f"{' '.join(argv)} did not start its daemons")
    made = len(with_argument(odd))
    if made < how_many:
        sys.exit(f"only {made} daemons are there")
    start = time.perf_counter_ns()
    child.stdin.close()
    child.wait()
    if ender:
        ender(odd)
    while True:
        took = (time.perf_counter_ns() - start) / 1e6
        if not with_argument(odd):
            return took


def scan(odd):
    """What a script would do: look for them and end them, until none is found."""
    while subprocess.run(["pkill", "-9", "-f", f"sleep {odd}"]).returncode == 0:
        pass


def memory(argv, project):
    """Kilobytes that a supervisor has in use while its command sleeps: all, and its own alone."""
    child = subprocess.Popen(argv + ["sleep", "1"], cwd=project)
    time.sleep(0.5)
    values = {}
    with open(f"/proc/{child.pid}/status", encoding="utf-8") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name in ("VmHWM", "RssAnon"):
                values[name] = int(rest.split()[0])
    child.wait()
    return values["VmHWM"], values["RssAnon"]


def start(argv, project, environment):
    begin = time.perf_counter_ns()
    done = subprocess.run(argv + ["true"], cwd=project, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)} failed")
    return (time.perf_counter_ns() - begin) / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ringfence", required=True)
    parser.add_argument("--daemons", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--starts", type=int, default=200)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    ringfence = os.path.abspath(arguments.ringfence)
    failed = False

    with tempfile.TemporaryDirectory(prefix="ringfence-bench-") as home:
        project = os.path.join(home, "project")
        os.mkdir(project)
        os.environ["HOME"] = home
        os.environ.pop("XDG_RUNTIME_DIR", None)
        confined = [ringfence, "run", "--project", project, "--"]
        landlock = [ringfence, "run", "--project", project, "--preset", "strict", "--engine", "landlock", "--on-gap", "report", "--"]
        track = [ringfence, "run", "--project", project, "--preset", "track", "--"]
        rows = [("ringfence", confined, None), ("ringfence, landlock engine", landlock, None), ("ringfence, track", track, None)]
        bwrap = shutil.which("bwrap")
        if bwrap:
            rows.append(("bubblewrap", [bwrap, "--dev-bind", "/", "/", "--unshare-pid", "--die-with-parent", "--"], None))
        if shutil.which("pkill"):
            rows.append(("nothing, then pkill until none is found", [], scan))
        times = {name: [] for name, _, _ in rows}
        for number in range(arguments.rounds):
            for index, (name, argv, ender) in enumerate(rows):
                odd = f"60.{os.getpid()}{number}{index}"
                times[name].append(end(argv, project, odd, arguments.daemons, ender))
        peer = statistics.median(times["bubblewrap"]) if "bubblewrap" in times else None
        print(f"{arguments.daemons} daemons, from the end of the command until none is left")
        for name, taken in times.items():
            median = statistics.median(taken)
            ratio = f"{median / peer:.2f}" if peer else "-"
            print(f"  {name:40} {ratio:>6} x bwrap  {median:8.1f} ms")
            if name.startswith("ringfence") and arguments.daemons <= 1000 and median > 1000:
                failed = True

        print("memory of a supervisor")
        for name, argv in (("ringfence", confined), ("ringfence, track", track)):
            whole, own = memory(argv, project)
            print(f"  {name:40} {whole:6} KiB, {own} of it its own")
            failed |= whole > 4096

        # Where nothing can be written, each of the two attempts is refused at once.
        plain = dict(os.environ)
        nowhere = {**plain, "XDG_STATE_HOME": "/dev/null/nowhere"}
        written, unwritten = [], []
        for _ in range(arguments.starts):
            written.append(start(confined, project, plain))
            unwritten.append(start(confined, project, nowhere))
        ratio = statistics.median(written) / statistics.median(unwritten)
        print(f"a session of `true`, written down and recorded: {ratio:.2f} x one that is not")
    if arguments.check and failed:
        sys.exit("over budget")


if __name__ == "__main__":
    main()
