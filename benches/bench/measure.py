"""How a command is started and timed, and what the numbers are condensed to.

A launch is posix_spawn and wait, nothing else, so that the driver's own cost is small and the same
for everybody. Every launch has a deadline; what the driver started is ended by its own id.
"""

import os
import random
import signal
import statistics
import subprocess
import sys
import time

DEADLINE_S = 120


class Broken(Exception):
    """A command that should have worked did not, or printed what cannot be read."""


class Bench:
    """One run: what is measured, how often, and where."""

    def __init__(self, ringfence, project, tools, rounds, smoke, files):
        self.ringfence, self.project, self.tools = ringfence, project, tools
        self.rounds, self.smoke, self.files = rounds, smoke, files
        self.library = None

    def few(self, usual, least=2):
        """Rounds of something slow: a share of the rounds asked for, and two in a smoke run."""
        return least if self.smoke else max(least, min(usual, self.rounds))


def spawn(argv, output=None):
    null = os.O_RDWR, "/dev/null"
    actions = [(os.POSIX_SPAWN_OPEN, 0, null[1], null[0], 0)]
    if output is None:
        actions.append((os.POSIX_SPAWN_OPEN, 1, null[1], null[0], 0))
    else:
        actions.append((os.POSIX_SPAWN_DUP2, output, 1))
    actions.append((os.POSIX_SPAWN_OPEN, 2, ".stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    return os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)


class Deadline:
    """Ends what was started here when it takes longer than anything should."""

    def __init__(self, pids):
        self.pids = pids

    def __enter__(self):
        def over(_signal, _frame):
            for pid in self.pids:
                os.kill(pid, signal.SIGKILL)

        signal.signal(signal.SIGALRM, over)
        signal.alarm(DEADLINE_S)

    def __exit__(self, *_):
        signal.alarm(0)


def ended(pid, argv, good=(0,)):
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in good:
        with open(".stderr", encoding="utf-8", errors="replace") as file:
            said = file.read()[-2000:]
        raise Broken(f"{' '.join(argv)[:300]} ended with {code}: {said}")


def together(argv, count, good=(0,)):
    """Wall time until `count` launches made at once have all ended, in microseconds for each."""
    pids = []
    with Deadline(pids):
        start = time.perf_counter_ns()
        for _ in range(count):
            pids.append(spawn(argv))
        left = list(pids)
        while left:
            pid = left[0]
            ended(pid, argv, good)
            left.pop(0)
            pids.remove(pid)
        return (time.perf_counter_ns() - start) / 1000 / count


def once(argv, good=(0,)):
    return together(argv, 1, good)


def output(argv, good=(0,)):
    """What a command prints, and the clock when the last holder of its output was gone."""
    reading, writing = os.pipe()
    pids = []
    with Deadline(pids):
        pids.append(spawn(argv, output=writing))
        os.close(writing)
        said = b""
        with os.fdopen(reading, "rb") as file:
            said = file.read()
        gone = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        ended(pids.pop(), argv, good)
    return said.decode(), gone


class Program:
    """A program that runs already, and says for each line it reads how long a session took."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline().strip()
        if not said.isdigit():
            raise Broken(f"the program that runs already said {said!r}")
        return int(said)


def interleaved(rows, rounds, one):
    """Samples per name, one of each in every round and in another order, after one unmeasured round.

    What stands for a command line may also be something that measures itself.
    """
    measured = lambda row: row() if callable(row) else one(row)
    samples = {name: [] for name, _ in rows}
    for _, row in rows:
        measured(row)
    for _ in range(rounds):
        for name, row in random.sample(rows, len(rows)):
            samples[name].append(measured(row))
    return samples


def p95(values):
    ordered = sorted(values)
    return ordered[max(0, round(len(ordered) * 0.95) - 1)]


def table(name, title, unit, samples, bare="bare", peer="bubblewrap", note=""):
    """A scenario's answer: medians and p95, always with the ratios beside them."""
    middle = {row: statistics.median(values) for row, values in samples.items()}
    rows = []
    for row, values in samples.items():
        rows.append(
            {
                "name": row,
                "median": round(middle[row], 2),
                "p95": round(p95(values), 2),
                "x_bare": round(middle[row] / middle[bare], 2) if middle.get(bare) else None,
                "x_peer": round(middle[row] / middle[peer], 2) if middle.get(peer) else None,
                "rounds": len(values),
            }
        )
    return {"kind": "table", "name": name, "title": title, "unit": unit, "bare": bare, "peer": peer, "rows": rows, "note": note}


def curve(name, title, across, unit, series, note=""):
    """Numbers that grow with something: series of [x, y], and how y per x moved from end to end."""
    for points in series.values():
        if any(not (y == y and y >= 0) for _, y in points):
            raise Broken(f"{name}: a number that is none: {points}")
    return {"kind": "curve", "name": name, "title": title, "across": across, "unit": unit, "series": series, "note": note}


def say(text):
    print(text, file=sys.stderr, flush=True)
