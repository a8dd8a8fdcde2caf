#!/usr/bin/env python3
"""Writes down which functions run when a command is confined: crates/ringfence-cli/start.ld.

The linker puts them side by side (crates/ringfence-cli/build.rs says why). A name that is gone since does no
harm, and one that is missing costs a page or two: write it again when much has changed.

    sudo python3 benches/order.py            write the file
    sudo python3 benches/order.py --check    say how much of what runs lies there

x86_64 only, with binutils and gcc; as root or as anybody who may trace what he starts.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE = os.path.join(TOP, "crates", "ringfence-cli", "start.ld")
TARGET = "x86_64-unknown-linux-musl"
SECTION = ".text.start"

# What people do most comes first; later lines add what they need beyond that.
LINES = [
    ["run", "--", "/bin/true"],
    ["run", "--engine", "landlock", "--preset", "strict", "--on-gap", "report", "--", "/bin/true"],
    ["run", "--net", "all", "--", "/bin/true"],
    ["run", "--", "/bin/sh", "-c", "echo a > made; sleep 0.1"],
]

HEAD = """/* What runs whenever a command is confined, in the order in which it runs. Written by benches/order.py. */
SECTIONS
{
  .text.start :
  {
"""
TAIL = """  }
}
INSERT BEFORE .text;
"""


def build(directory):
    """A binary with its symbols, and the tracer."""
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(TOP, "target"))
    environment = {**os.environ, "CARGO_TARGET_DIR": os.path.join(target, "order"), "CARGO_PROFILE_RELEASE_STRIP": "none"}
    line = ["cargo", "build", "--release", "--target", TARGET, "-p", "ringfence-cli"]
    subprocess.run(line, cwd=TOP, env=environment, check=True)
    tracer = os.path.join(directory, "visited")
    source = os.path.join(TOP, "benches", "visited.c")
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-o", tracer, source], check=True)
    return os.path.join(target, "order", TARGET, "release", "ringfence"), tracer


def functions(binary):
    """Address and name of each."""
    said = subprocess.run(["nm", "--defined-only", binary], capture_output=True, text=True, check=True).stdout
    words = (line.split() for line in said.splitlines())
    return [(int(address, 16), name) for address, kind, name in words if kind in "tTwW"]


def visited(binary, tracer, starts, directory):
    """Addresses, in the order of their first visit."""
    addresses = os.path.join(directory, "addresses")
    with open(addresses, "w", encoding="ascii") as file:
        file.writelines(f"{address:x}\n" for address in starts)
    project = os.path.join(directory, "project")
    os.makedirs(project, exist_ok=True)
    order = {}
    for line in LINES:
        done = subprocess.run([tracer, addresses, binary, *line], cwd=project, capture_output=True, text=True, timeout=60)
        if done.returncode:
            sys.exit(f"{' '.join(line)} ended with {done.returncode}: {done.stderr[-2000:]}")
        for address in done.stdout.split():
            order.setdefault(int(address, 16))
    return list(order)


def pattern(name):
    """A name without what differs from one compiler to the next."""
    name = re.sub(r"17h[0-9a-f]{16}E", "17h????????????????E", name)
    name = re.sub(r"Cs[0-9A-Za-z]+_(?=\d)", "Cs*_", name)
    return re.sub(r"\.llvm\.\d+$", ".llvm.*", name)


def patterns(order, known):
    """What the linker is told to look for. Last those that others have as well, which do not run."""
    runs = set(order)
    others = {pattern(name) for address, named in known.items() if address not in runs for name in named}
    found = dict.fromkeys(pattern(name) for address in order for name in known[address])
    return sorted(found, key=lambda name: name in others)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    for tool in ("cargo", "cc", "nm", "readelf"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is not installed")
    with tempfile.TemporaryDirectory() as directory:
        binary, tracer = build(directory)
        known = {}
        for address, name in functions(binary):
            known.setdefault(address, []).append(name)
        order = visited(binary, tracer, known, directory)
    if check:
        said = subprocess.run(["readelf", "-SW", binary], capture_output=True, text=True, check=True).stdout
        section = re.search(rf"{re.escape(SECTION)}\s+PROGBITS\s+(\w+)\s+\w+\s+(\w+)", said)
        start, size = (int(word, 16) for word in section.groups()) if section else (0, 0)
        inside = sum(start <= address < start + size for address in order)
        print(f"{inside} of {len(order)} functions that run lie in {SECTION}, which has {size} bytes")
        return
    found = patterns(order, known)
    with open(FILE, "w", encoding="ascii") as file:
        file.write(HEAD)
        # Between those words is what the compiler thinks of it: `.unlikely`, say.
        file.writelines(f"    *(.text*.{name})\n" for name in found)
        file.write(TAIL)
    print(f"{FILE}: {len(found)} names")


if __name__ == "__main__":
    main()
