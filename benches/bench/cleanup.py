"""How long it takes until nothing is left: from the command's end to the death of its last daemon.

Every daemon holds the standard output, so the end of that pipe is the end of the last one. The
driver never runs these bare: nobody would end them.
"""

from . import measure, peers


def after_end(argv):
    said, gone = measure.output(argv)
    return (gone - int(said)) / 1000


def scenario(bench):
    launchers = peers.some(bench, "ringfence", "ringfence, landlock engine", "bubblewrap")
    count = 50 if bench.smoke else 1000
    for name, title, command in (
        ("daemons", f"Ending {count:,} double-forked daemons", ["daemons", str(count)]),
        ("storm", "Ending a fork storm of 20", ["storm", "20"]),
    ):
        rows = [(who, [*argv, bench.tools["probe"], *command]) for who, argv in launchers]
        samples = measure.interleaved(rows, bench.few(15), after_end)
        yield measure.table(name, title, "µs", samples, bare=None)
