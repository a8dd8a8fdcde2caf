"""Start-up of one confined `true`: warm, cold, and many at once."""

import os

from . import measure, peers

TRUE = "/bin/true"


def forget(argv):
    """Drop the files of this launch from the page cache, as far as nobody else has them mapped."""
    for path in {os.path.realpath(argv[0]), os.path.realpath(TRUE)}:
        file = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def cold(argv):
    forget(argv)
    return measure.once(argv)


def scenario(bench):
    present, absent = peers.launchers(bench)
    rows = [(name, [*argv, TRUE]) for name, argv in present]
    rows, broken = usable(rows)
    left_out = [f"{name} is not installed" for name in absent] + [f"{name} cannot run here" for name in broken]
    note = "; ".join(left_out)
    running = [("ringfence, from a program that runs", measure.Program(bench.library))] if bench.library else []
    samples = measure.interleaved([*rows, *running], bench.few(bench.rounds), measure.once)
    yield measure.table("startup", "Start-up, one at a time, warm", "µs", samples, note=note)
    short = [(name, argv) for name, argv in rows if name in ("bare", "ringfence", "ringfence, landlock engine", "bubblewrap", "firejail")]
    yield measure.table(
        "startup-cold", "Start-up, the binaries not in the page cache", "µs", measure.interleaved(short, bench.few(60), cold)
    )
    for count in (8,) if bench.smoke else (8, 200):
        at_once = lambda argv, count=count: measure.together(argv, count)
        rounds = bench.few(40 if count == 8 else 8)
        yield measure.table(
            f"startup-{count}", f"Start-up, {count} at once, time for each", "µs", measure.interleaved(short, rounds, at_once)
        )


def usable(rows):
    """A peer may be installed and still refuse this host; ringfence and bubblewrap may not."""
    works, broken = [], []
    for name, argv in rows:
        try:
            measure.once(argv)
        except measure.Broken:
            if name == "bare" or (name.startswith("ringfence") and name != "ringfence, bwrap engine"):
                raise
            broken.append(name)
        else:
            works.append((name, argv))
    return works, broken
