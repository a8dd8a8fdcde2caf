//! All verdicts, against a record. A change of a rule, a number or the compiler shows as a changed
//! line there, for somebody to read.
//!
//! The programs are asked, never the data. A call whose arguments matter shows every verdict that
//! telling arguments can get from it; `expectations` has the single ones.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::super::bpf::Program;
use super::super::compile;
use super::super::decision::Call;
use super::super::spec::{Arch, FilterSpec};
use super::super::table::Syscall;
use super::worlds::{ARM, I386, X32_BIT, named_specs, native, telling_values};

const NUMBERS: std::ops::Range<u32> = 0..600;

#[test]
fn verdicts_are_those_on_record() {
    insta::assert_snapshot!("verdicts_aarch64", record(Arch::Aarch64));
    insta::assert_snapshot!("verdicts_x86_64", record(Arch::X86_64));
}

fn record(arch: Arch) -> String {
    let specs = named_specs(arch).map(|(name, spec)| (name, spec, compile(spec)));
    let mut rows = vec![(
        "number".to_owned(),
        "call".to_owned(),
        specs.iter().map(|(name, ..)| (*name).to_owned()).collect(),
    )];
    let values = telling_values();
    let entries = |label: &str, call: &dyn Fn(FilterSpec, u32, [u64; 6]) -> Call| {
        let mut rows: Vec<(String, String, Vec<String>)> = Vec::new();
        let mut from = 0;
        for number in NUMBERS {
            let name = if label.is_empty() {
                Syscall::numbered(arch, number)
                    .map_or("-", Syscall::name)
                    .to_owned()
            } else {
                label.to_owned()
            };
            let verdicts: Vec<String> = specs
                .iter()
                .map(|(_, spec, program)| {
                    verdicts(program, &values, &|args| call(*spec, number, args))
                })
                .collect();
            match rows.last_mut() {
                // Named calls keep a line each; stretches without names are drawn together.
                Some((numbers, last, same))
                    if *last == name && *same == verdicts && (name == "-" || !label.is_empty()) =>
                {
                    *numbers = format!("{from}-{number}");
                }
                _ => {
                    from = number;
                    rows.push((number.to_string(), name, verdicts));
                }
            }
        }
        rows
    };
    rows.extend(entries("", &native));
    match arch {
        Arch::Aarch64 => {
            rows.extend(entries("(arm)", &|_, number, args| Call {
                arch: ARM,
                args,
                number,
            }));
        }
        Arch::X86_64 => {
            rows.extend(entries("(i386)", &|_, number, args| Call {
                arch: I386,
                args,
                number,
            }));
            rows.extend(entries("(x32)", &|spec, number, args| {
                native(spec, number | X32_BIT, args)
            }));
        }
    }
    lay_out(&rows)
}

/// All verdicts that a number can get, by name.
fn verdicts(program: &Program, values: &[u64], call: &dyn Fn([u64; 6]) -> Call) -> String {
    let mut found = BTreeSet::new();
    let first = program.run(&call([0; 6]));
    found.insert(first.verdict.name());
    // A path that reads no argument is the same for all of them.
    if first.reads_arguments {
        for one in values {
            for family in [1, 2, 16, *one] {
                for kind in [1, 2, *one] {
                    let args = [family, kind, *one, *one, 0, 0];
                    found.insert(program.run(&call(args)).verdict.name());
                }
            }
        }
    }
    found.into_iter().collect::<Vec<_>>().join("|")
}

fn lay_out(rows: &[(String, String, Vec<String>)]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|(_, _, verdicts)| verdicts[column].len())
            .max()
            .unwrap_or(0)
    };
    let mut text = String::new();
    for (number, name, verdicts) in rows {
        let mut line = format!("{number:8}{name:24}");
        for (column, verdict) in verdicts.iter().enumerate() {
            write!(line, "{verdict:0$}", width(column) + 2).unwrap();
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
