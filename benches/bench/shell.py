"""What reading a command costs: `ringfence check` over typical commands, and as the text grows."""

import statistics

from . import measure

# Typical of what an agent asks for; repeated, they make a script of any length.
CORPUS = """\
ls -la
git status --short && git diff --stat
grep -rn 'fn main' src --include='*.rs' | sort -u | head -n 20
for f in src/*.rs; do wc -l "$f"; done
if [ -f Makefile ]; then make test 2>&1 | tail -n 40; fi
RUST_LOG=debug timeout 60 cargo test --workspace 2>&1 | grep -E '^(test|error)'
find . -name '*.o' -exec rm {} +
python3 - <<'END'
print("hello")
END
sed -n '1,40p' README.md; cat Cargo.toml
"""
COMMANDS = 9


def scenario(bench):
    sizes = [1, 64] if bench.smoke else [1, 4, 16, 64, 256, 1024]
    paths = {0: "empty.sh"}
    for size in sizes:
        paths[size] = f"script{size}.sh"
    for size, path in paths.items():
        with open(path, "w", encoding="ascii") as file:
            file.write(CORPUS * (size * 1024 // len(CORPUS)) or "true\n")
    rows = [(size, [bench.ringfence, "check", path]) for size, path in paths.items()]
    # Whether the rules allow it is not the question here: 1 is an answer too.
    samples = measure.interleaved(rows, bench.few(25), lambda argv: measure.once(argv, good=(0, 1)))
    start = statistics.median(samples[0])
    took = {size: max(0.0, statistics.median(samples[size]) - start) for size in sizes}
    yield measure.curve(
        "shell", "Reading a script", "KiB", "ms", {"ringfence check": [[size, round(value / 1000, 3)] for size, value in took.items()]},
        note="without the start of the program",
    )
    largest = sizes[-1]
    lines = COMMANDS * (largest * 1024 // len(CORPUS))
    yield measure.curve(
        "shell-command", "Reading one command", "KiB", "µs for each command",
        {"ringfence check": [[size, round(value / (COMMANDS * (size * 1024 // len(CORPUS))), 2)] for size, value in took.items()]},
        note=f"level means linear; {lines:,} commands in the largest script",
    )
