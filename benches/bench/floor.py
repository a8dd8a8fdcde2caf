"""Where start-up goes: time per act, and the distance to the same system calls in a minimal program."""

import json
import re
import statistics
import subprocess

from . import measure, peers

TRUE = "/bin/true"
UNITS = {"ns": 0.001, "µs": 1.0, "ms": 1000.0, "s": 1e6}
ACT = re.compile(r"^ringfence: +([0-9.]+)(ns|µs|ms|s) (.+)$")


def plan(bench):
    """How many mounts and Landlock rules the plan of a plain launch has."""
    said = subprocess.run(
        [bench.ringfence, "run", "--dry-run", "--json", "--", TRUE], capture_output=True, check=True, timeout=60
    )
    acts = {act["act"]: act for act in json.loads(said.stdout)["acts"]}
    return len(acts["root"]["mounts"]), len(acts["landlock"]["rules"])


def acts(bench):
    """Microseconds per act, as ringfence itself reports them."""
    said = subprocess.run(
        [bench.ringfence, "run", "-vv", "--", TRUE], capture_output=True, check=True, timeout=60, text=True
    )
    found = {}
    for line in said.stderr.splitlines():
        if match := ACT.match(line):
            found[match[3]] = float(match[1]) * UNITS[match[2]]
    if "start the command" not in found:
        raise measure.Broken(f"no times per act in: {said.stderr}")
    return found


# As long as the program of a plain launch on x86_64, counted by PTRACE_SECCOMP_GET_FILTER.
INSTRUCTIONS = 173


def scenario(bench):
    mounts, rules = plan(bench)
    rows = [
        ("bare", [TRUE]),
        ("floor", [bench.tools["floor"], str(mounts), str(rules), str(INSTRUCTIONS), TRUE]),
    ]
    rows += [(name, [*argv, TRUE]) for name, argv in peers.some(bench, "ringfence", "bubblewrap")]
    yield measure.table(
        "floor",
        "Start-up against the floor",
        "µs",
        measure.interleaved(rows, bench.few(bench.rounds), measure.once),
        peer="floor",
        note=f"the floor makes {mounts} mounts, {rules} Landlock rules and a filter of {INSTRUCTIONS} instructions",
    )
    samples = {}
    for _ in range(bench.few(60)):
        for name, value in acts(bench).items():
            samples.setdefault(name, []).append(value)
    total = samples.pop("start the command")
    ordered = dict(sorted(samples.items(), key=lambda item: -statistics.median(item[1])))
    yield measure.table(
        "acts", "Where start-up goes", "µs", {"from the first act to the command": total, **ordered},
        bare="from the first act to the command", peer=None,
        note="acts can overlap with work of the supervisor, so that they do not add up to the whole",
    )
