//! What a launch pays for its filter before the kernel sees it, and what a verdict costs to look
//! up. The budget is a few microseconds: a launch takes about two thousand.
#![allow(missing_docs, reason = "the macros below write undocumented items")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ringfence_core::seccomp::{Arch, Call, FilterSpec, compile, explain};

fn build(criterion: &mut Criterion) {
    for (name, spec) in [
        ("namespaces", FilterSpec::namespaces(Arch::X86_64)),
        ("strictest", FilterSpec::strictest(Arch::X86_64)),
        ("namespaces, aarch64", FilterSpec::namespaces(Arch::Aarch64)),
    ] {
        criterion.bench_function(&format!("compile {name}"), |bencher| {
            bencher.iter(|| compile(black_box(spec)));
        });
    }
}

fn ask(criterion: &mut Criterion) {
    let spec = FilterSpec::namespaces(Arch::X86_64);
    let program = compile(spec);
    let openat = Call {
        arch: spec.arch.token(),
        args: [0; 6],
        number: 257,
    };
    criterion.bench_function("interpret openat", |bencher| {
        bencher.iter(|| program.run(black_box(&openat)));
    });
    criterion.bench_function("explain socket", |bencher| {
        bencher.iter(|| explain(black_box(spec), "socket").map(|found| found.to_string()));
    });
}

criterion_group!(benches, build, ask);
criterion_main!(benches);
