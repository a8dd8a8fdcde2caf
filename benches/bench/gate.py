"""The network gate against a direct connection on a loopback of its own: benches/gate.py does the work."""

import json
import os
import subprocess
import sys

from . import measure

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gate.py")


def scenario(bench):
    sizes = ["--megabytes", "8", "--rounds", "1", "--visits", "5", "--launches", "1"]
    if not bench.smoke:
        rounds = str(bench.few(7))
        sizes = ["--megabytes", "512", "--rounds", rounds, "--visits", "1000", "--launches", "30"]
    argv = [sys.executable, SCRIPT, "--ringfence", bench.ringfence, *sizes, "--json", "gate.json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise measure.Broken(f"gate.py: {done.stderr[-2000:]}")
    with open("gate.json", encoding="utf-8") as file:
        ways = json.load(file)["ways"]
    names = {"direct": "direct", "proxy": "ringfence, by its proxy", "no proxy": "ringfence, no proxy known"}
    second = {names[way]: [1e6 / speed] for way, (speed, _) in ways.items()}
    visit = {names[way]: [took] for way, (_, took) in ways.items()}
    note = "the median of all rounds, so that no p95 is known"
    yield measure.table("gate-bulk", "Bulk data through the gate, time for each MB", "µs", second, bare="direct", peer=None, note=note)
    yield measure.table("gate-visit", "One connection with one small request", "µs", visit, bare="direct", peer=None, note=note)
