#!/usr/bin/env python3
"""What the network gate costs, against a direct connection, in one run.

Everything happens in a network namespace that this script makes: a server with a public address on
the namespace's own loopback, clients that reach it directly, through the proxy of a session, and
from a session without a proxy. Rounds are interleaved; what counts is the ratio of medians within
one run.

    cargo build --release -p ringfence-cli
    python3 benches/gate.py --ringfence target/release/ringfence

    --megabytes N  bulk data in each round (default 512)
    --rounds N     how often each is measured (default 7)
    --visits N     connections with one small request in each round (default 300)
    --json FILE    also write the numbers as JSON
"""

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ADDRESS = "93.184.216.34"
NAME = "bulk.test"
BULK, SMALL = 7001, 7002
PROXY = ("127.0.0.1", 61080)


def serve(megabytes, project):
    """Bulk data on one port, and one short answer to one short request on the other."""
    block = os.path.join(project, "block")
    with open(block, "wb") as out:
        out.write(b"\0" * (8 << 20))

    def bulk(client):
        with client, open(block, "rb") as source:
            left = megabytes << 20
            while left > 0:
                left -= os.sendfile(client.fileno(), source.fileno(), 0, min(left, 8 << 20))

    def small(client):
        with client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.recv(100)
            client.sendall(b"answer")

    def accept(port, handle):
        listener = socket.create_server((ADDRESS, port), backlog=512)
        while True:
            client, _ = listener.accept()
            threading.Thread(target=handle, args=(client,), daemon=True).start()

    for port, handle in ((BULK, bulk), (SMALL, small)):
        threading.Thread(target=accept, args=(port, handle), daemon=True).start()


CLIENT = r"""
import socket, sys, time
way, bulk, small, visits = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
def connect(port):
    if way == "proxy":
        s = socket.create_connection(("127.0.0.1", 61080))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.sendall(b"CONNECT 93.184.216.34:%d HTTP/1.1\r\nHost: 93.184.216.34:%d\r\n\r\n" % (port, port))
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += s.recv(1000)
        assert b" 200 " in answer, answer
        return s
    s = socket.create_connection(("93.184.216.34", port))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s
room = bytearray(1 << 20)
with connect(bulk) as s:
    start, total = time.perf_counter(), 0
    while count := s.recv_into(room):
        total += count
    print(total / (time.perf_counter() - start) / 1e6)
start = time.perf_counter()
for _ in range(visits):
    with connect(small) as s:
        s.sendall(b"question")
        assert s.recv(100) == b"answer"
print((time.perf_counter() - start) / visits * 1e6)
"""


def measure(argv, project):
    done = subprocess.run(argv, cwd=project, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{argv[:6]} failed: {done.stderr.decode(errors='replace')}")
    return [float(line) for line in done.stdout.split()]


def launches(ringfence, project, rounds):
    """Start-up with and without a gate, in microseconds, interleaved."""
    rows = {"none": [], "hosts": []}
    for _ in range(rounds):
        for name, flags in (("none", ["--net", "none"]), ("hosts", ["--allow-host", "example.org"])):
            argv = [ringfence, "run", *flags, "--", "/bin/true"]
            start = time.perf_counter_ns()
            subprocess.run(argv, cwd=project, stdin=subprocess.DEVNULL, check=True)
            rows[name].append((time.perf_counter_ns() - start) / 1000)
    return {name: statistics.median(values) for name, values in rows.items()}


def main():
    parser = argparse.ArgumentParser(description="the network gate against a direct connection")
    parser.add_argument("--ringfence", default="target/release/ringfence")
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--visits", type=int, default=300)
    parser.add_argument("--launches", type=int, default=50)
    parser.add_argument("--json")
    options = parser.parse_args()
    if os.environ.get("GATE_BENCH_STAGE") != "inside":
        environment = dict(os.environ, GATE_BENCH_STAGE="inside")
        unshare = [] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
        os.execvpe("unshare", ["unshare", *unshare, "--net", sys.executable, *sys.argv], environment)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "addr", "add", ADDRESS, "dev", "lo"], check=True)
    ringfence = os.path.abspath(options.ringfence)
    project = tempfile.mkdtemp(prefix="gate-bench-")
    try:
        serve(options.megabytes, project)
        time.sleep(0.2)
        python = ["/usr/bin/python3", "-c", CLIENT]
        numbers = [str(BULK), str(SMALL), str(options.visits)]
        inside = [ringfence, "run", "--allow-host", f"{ADDRESS}:*", "--"]
        rows = {
            "direct": [*python, "direct", *numbers],
            "proxy": [*inside, *python, "proxy", *numbers],
            "no proxy": [*inside, *python, "direct", *numbers],
        }
        results = {name: [] for name in rows}
        for _ in range(options.rounds):
            for name, argv in rows.items():
                results[name].append(measure(argv, project))
        medians = {
            name: [statistics.median(column) for column in zip(*values)] for name, values in results.items()
        }
        base = medians["direct"]
        print(f"{'way':10} {'MB/s':>8} {'x direct':>9} {'us/visit':>9} {'x direct':>9}")
        for name, (speed, visit) in medians.items():
            print(f"{name:10} {speed:8.0f} {speed / base[0]:9.2f} {visit:9.0f} {visit / base[1]:9.2f}")
        start = launches(ringfence, project, options.launches)
        print(f"start-up: {start['none']:.0f} us without hosts, {start['hosts'] - start['none']:+.0f} us with")
        if options.json:
            with open(options.json, "w", encoding="utf-8") as out:
                json.dump({"ways": medians, "start": start}, out, indent=2)
    finally:
        shutil.rmtree(project, ignore_errors=True)


if __name__ == "__main__":
    main()
