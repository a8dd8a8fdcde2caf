#!/usr/bin/env python3
"""Start-up of one confined `true`, side by side with what users would pick instead.

Rounds are interleaved, so that whatever else the machine does falls on everybody alike; what
counts is the ratio of medians within one run. Peers that are not installed are left out and
named. Run it on a quiet machine, as the user whose launches matter:

    cargo build --release --target x86_64-unknown-linux-musl -p ringfence-cli
    python3 benches/startup.py --ringfence target/x86_64-unknown-linux-musl/release/ringfence

    --rounds N     how often each command runs (default 300)
    --json FILE    also write the numbers as JSON
    --command CMD  what is confined (default /bin/true)
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def candidates(ringfence, command, project):
    """Name and argv of everything to compare; None where it is not installed."""
    rows = [
        ("bare", command),
        ("ringfence", [ringfence, "run", "--"] + command),
        ("ringfence, shared network", [ringfence, "run", "--net", "all", "--"] + command),
        (
            "ringfence, landlock engine",
            [ringfence, "run", "--preset", "strict", "--engine", "landlock", "--on-gap", "report", "--"] + command,
        ),
        ("ringfence, dry run", [ringfence, "run", "--dry-run", "--"] + command),
    ]
    bwrap = shutil.which("bwrap")
    shared = ["--ro-bind", "/", "/", "--bind", project, project, "--dev", "/dev", "--proc", "/proc"]
    shared += ["--tmpfs", "/tmp", "--die-with-parent", "--new-session"]
    rows.append(("bubblewrap", bwrap and [bwrap] + shared + ["--unshare-all", "--"] + command))
    firejail = shutil.which("firejail")
    rows.append(("firejail", firejail and [firejail, "--quiet", "--net=none", "--private-tmp"] + command))
    return rows


def once(argv, project):
    """Wall time of one run, in microseconds."""
    start = time.perf_counter_ns()
    done = subprocess.run(
        argv, cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    took = (time.perf_counter_ns() - start) / 1000
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)} failed with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ringfence", required=True)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--json")
    parser.add_argument("--command", default="/bin/true")
    arguments = parser.parse_args()
    ringfence = os.path.abspath(arguments.ringfence)
    command = arguments.command.split()

    with tempfile.TemporaryDirectory(prefix="ringfence-bench-") as project:
        rows = candidates(ringfence, command, project)
        absent = [name for name, argv in rows if not argv]
        rows = [(name, argv) for name, argv in rows if argv]
        times = {name: [] for name, _ in rows}
        for _, argv in rows:
            once(argv, project)
        for _ in range(arguments.rounds):
            for name, argv in rows:
                times[name].append(once(argv, project))

    bare = statistics.median(times["bare"])
    peer = statistics.median(times["bubblewrap"]) if "bubblewrap" in times else None
    result = []
    for name, _ in rows:
        ordered = sorted(times[name])
        median = statistics.median(ordered)
        result.append(
            {
                "name": name,
                "median_us": round(median),
                "p95_us": round(ordered[int(len(ordered) * 0.95) - 1]),
                "x_bare": round(median / bare, 2),
                "x_bubblewrap": peer and round(median / peer, 2),
            }
        )
    print(f"{'':30} {'x bare':>8} {'x bwrap':>8} {'median us':>10} {'p95 us':>8}")
    for row in result:
        against_peer = "-" if row["x_bubblewrap"] is None else f"{row['x_bubblewrap']:.2f}"
        print(f"{row['name']:30} {row['x_bare']:8.2f} {against_peer:>8} {row['median_us']:10} {row['p95_us']:8}")
    for name in absent:
        print(f"{name}: not installed, left out")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"version": 1, "rounds": arguments.rounds, "rows": result}, file, indent=2)


if __name__ == "__main__":
    main()
