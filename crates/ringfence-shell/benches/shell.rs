//! How long reading and judging takes. docs/SHELL.md states the budget.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ringfence_shell::{Ir, RuleSet, decide};

const COMMANDS: &[(&str, &str)] = &[
    ("ls", "ls -la"),
    (
        "pipeline",
        "grep -rn 'fn main' src --include='*.rs' | sort -u | head -n 20",
    ),
    (
        "list",
        "cargo build --release 2>&1 | tail -n 5 && cargo test -p core -- --nocapture && git status --short",
    ),
    (
        "typical",
        "if [ -f \"$HOME/.cargo/env\" ]; then . \"$HOME/.cargo/env\"; fi; RUST_LOG=debug timeout 60 cargo test --workspace 2>&1 | grep -E '^(test|error)' | tail -40",
    ),
    (
        "wrapped",
        "sudo -u bob env -u A nice -n 5 timeout -s KILL 9 bash -c 'find . -name \"*.o\" -exec rm {} +'",
    ),
];

const LINE: &str = "for f in src/*.rs; do\n  if grep -q \"TODO: $x\" \"$f\"; then\n    echo \"$(basename \"$f\"): $(wc -l < \"$f\")\" | tee /dev/stderr\n  fi\ndone # next\n";

fn judge(text: &str) -> bool {
    decide(&Ir::from_bash(text), RuleSet::Verify).is_allow()
}

fn commands(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("command");
    for (name, text) in COMMANDS {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(*name, |bencher| bencher.iter(|| judge(black_box(text))));
    }
    group.finish();
}

fn scripts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("script");
    group.sample_size(20);
    for kib in [1, 10, 100, 1024] {
        let size = kib * 1024;
        let text = LINE.repeat(size / LINE.len());
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_with_input(
            BenchmarkId::from_parameter(format!("{kib}KiB")),
            &text,
            |bencher, text| {
                bencher.iter(|| judge(black_box(text)));
            },
        );
    }
    group.finish();
}

criterion_group!(benches, commands, scripts);
criterion_main!(benches);
