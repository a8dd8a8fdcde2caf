"""How cost grows: with sessions that live at the same time, and with rules of one policy."""

import os
import resource
import statistics
import subprocess
import time

from . import measure, peers


def resident(pid):
    """The supervisor's own share of memory, in KiB."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1])
    raise measure.Broken("smaps_rollup without Pss")


def sessions(argv, count):
    """Start that many, wait until each answers; time for each, then what the supervisors hold."""
    held = []
    try:
        start = time.perf_counter()
        for _ in range(count):
            held.append(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
        for one in held:
            one.stdin.write(b"x")
            one.stdin.flush()
            if one.stdout.read(1) != b"x":
                raise measure.Broken(f"{' '.join(argv)} did not answer")
        took = (time.perf_counter() - start) * 1000 / count
        seen = [held[0], held[-1], held[count // 2]]
        memory = statistics.median(resident(one.pid) for one in seen)
        open_files = statistics.median(len(os.listdir(f"/proc/{one.pid}/fd")) for one in seen)
    finally:
        for one in held:
            one.stdin.close()
        for one in held:
            try:
                one.wait(timeout=measure.DEADLINE_S)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
            one.stdout.close()
    return took, memory, open_files


def scenario(bench):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        counts = [1, 5] if bench.smoke else [1, 10, 50, 100, 200, 500]
        took, memory, files = {}, {}, {}
        for name, argv in peers.some(bench, "ringfence", "bubblewrap"):
            for series in (took, memory, files):
                series[name] = []
        for count in counts:
            for name, argv in peers.some(bench, "ringfence", "bubblewrap"):
                rounds = [sessions([*argv, "/bin/cat"], count) for _ in range(1 if bench.smoke else 3)]
                for series, column in zip((took, memory, files), zip(*rounds)):
                    series[name].append([count, round(statistics.median(column), 2)])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    yield measure.curve("sessions-time", "Starting sessions that stay", "sessions", "ms for each", took, note="level means linear")
    yield measure.curve("sessions-memory", "Memory of one supervisor", "sessions", "KiB (PSS)", memory)
    yield measure.curve("sessions-files", "Open descriptors of one supervisor", "sessions", "descriptors", files)

    rules = [10, 100] if bench.smoke else [10, 100, 1000, 3000, 10000]
    os.makedirs("r", exist_ok=True)
    for at in range(rules[-1]):
        os.makedirs(f"r/{at}", exist_ok=True)
    series = {"ringfence": []}
    if peers.bubblewrap(bench.project):
        series["bubblewrap"] = []
    for count in rules:
        paths = [os.path.join(bench.project, "r", str(at)) for at in range(count)]
        rows = [("ringfence", [bench.ringfence, "run", *[word for path in paths for word in ("--read", path)], "--", "/bin/true"])]
        # bubblewrap refuses more than 9,000 arguments.
        if "bubblewrap" in series and count <= 2500:
            binds = [word for path in paths for word in ("--ro-bind", path, path)]
            rows.append(("bubblewrap", [*peers.bubblewrap(bench.project, extra=binds), "/bin/true"]))
        for name, values in measure.interleaved(rows, bench.few(5), measure.once).items():
            series[name].append([count, round(statistics.median(values) / 1000, 2)])
    yield measure.curve("rules", "Start-up as rules grow", "rules", "ms", series, note="bubblewrap takes no more than 9,000 arguments")
