"""What confinement costs a command that is already running: opens, a walk, git and a compiler."""

import os
import shutil
import subprocess

from . import measure, peers

RULES = 30


def plant(files, git):
    """A tree of that many small files, a hundred in each directory; a git work tree if there is git."""
    os.makedirs("tree", exist_ok=True)
    for at in range(files):
        if at % 100 == 0:
            directory = f"tree/{at // 10000:03}/{at // 100 % 100:02}"
            os.makedirs(directory, exist_ok=True)
        with open(f"{directory}/{at % 100:02}.txt", "w", encoding="ascii") as file:
            file.write(f"{at}\n")
    if git:
        subprocess.run([git, "-C", "tree", "init", "-q"], check=True, timeout=60)
        subprocess.run([git, "-C", "tree", "-c", "gc.auto=0", "add", "."], check=True, timeout=600)


def sources(parts):
    for at in range(parts):
        with open(f"part{at}.c", "w", encoding="ascii") as file:
            file.write("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n")
            for function in range(200):
                file.write(f"int part{at}_{function}(int x) {{ return x * {function + 1} + (int)strlen(\"{at}\"); }}\n")


def scenario(bench):
    deep = os.path.join(bench.project, *[f"d{at}" for at in range(9)])
    os.makedirs(deep, exist_ok=True)
    leaf = os.path.join(deep, "leaf")
    with open(leaf, "w", encoding="ascii") as file:
        file.write("leaf\n")
    granted = [os.path.join(bench.project, f"granted{at}") for at in range(RULES)]
    for path in granted:
        os.makedirs(path, exist_ok=True)
    reads = [word for path in granted for word in ("--read", path)]
    binds = [word for path in granted for word in ("--ro-bind", path, path)]
    rows = [("bare", [])]
    rows.append((f"ringfence, {RULES} rules", [bench.ringfence, "run", *reads, "--"]))
    if wrapped := peers.bubblewrap(bench.project, extra=binds):
        rows.append(("bubblewrap", wrapped))
    count = 2000 if bench.smoke else 200000
    probe = [bench.tools["probe"], "opens", leaf, str(count)]
    opened, looked = {name: [] for name, _ in rows}, {name: [] for name, _ in rows}
    for _ in range(bench.few(15)):
        for name, argv in rows:
            said, _ = measure.output([*argv, *probe])
            open_ns, stat_ns = said.split()
            opened[name].append(float(open_ns))
            looked[name].append(float(stat_ns))
    yield measure.table("open", "open and close at depth 10", "ns", opened)
    yield measure.table("stat", "stat at depth 10", "ns", looked)

    launchers = peers.some(bench, "bare", "ringfence", "bubblewrap")
    files = 200 if bench.smoke else bench.files
    # Metadata is hidden by default, so nobody looks at it.
    walk = ["/usr/bin/find", "tree", "-name", ".git", "-prune", "-o", "-type", "f", "-size", "+1M", "-print"]
    work = [("walk", f"find over {files:,} files", walk)]
    git, compiler = shutil.which("git"), shutil.which("cc")
    plant(files, git)
    if git:
        work.append(("git", f"git status over {files:,} files", [git, "-C", "tree", "status", "--short"]))
    if compiler:
        parts = 1 if bench.smoke else 4
        sources(parts)
        work.append(("compile", "a small compile", [compiler, "-O1", "-c", *[f"part{at}.c" for at in range(parts)]]))
    for name, title, command in work:
        rows = [(who, [*argv, *command]) for who, argv in launchers]
        if name == "git":
            # Metadata is hidden by default, in a repository inside the project, too.
            rows = [(who, [argv[0], "run", "--git", "read", *argv[2:]] if who == "ringfence" else argv) for who, argv in rows]
        samples = measure.interleaved(rows, bench.few(12), measure.once)
        yield measure.table(name, title, "µs", samples)
