//! All verdicts, against a record. A change of a rule, a number or the compiler shows as a changed
//! line there, for somebody to read.
//!
//! Verdicts come from the programs; the data only suggests telling arguments. A call whose
//! arguments matter shows every verdict that they can bring out; `expectations` has the single
//! ones.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::super::decision::{Call, Decision};
use super::super::rules;
use super::super::spec::{Arch, FilterSpec};
use super::super::table::Syscall;
use super::worlds::{ARM, Filter, I386, X32_BIT, named_specs, native, telling_values_for};

const NUMBERS: std::ops::Range<u32> = 0..600;

#[test]
fn verdicts_are_those_on_record() {
    insta::assert_snapshot!("verdicts_aarch64", record(Arch::Aarch64));
    insta::assert_snapshot!("verdicts_x86_64", record(Arch::X86_64));
}

/// A line of the record.
struct Row {
    numbers: String,
    name: String,
    verdicts: Vec<String>,
}

fn record(arch: Arch) -> String {
    let filters = named_specs(arch).map(|(name, spec)| (name, Filter::new(spec)));
    let mut rows = stretch(&filters, None, &|spec, number, args| {
        native(spec, number, args)
    });
    match arch {
        Arch::Aarch64 => {
            rows.extend(stretch(&filters, Some("(arm)"), &|_, number, args| Call {
                arch: ARM,
                args,
                number,
            }));
        }
        Arch::X86_64 => {
            rows.extend(stretch(&filters, Some("(i386)"), &|_, number, args| Call {
                arch: I386,
                args,
                number,
            }));
            rows.extend(stretch(&filters, Some("(x32)"), &|spec, number, args| {
                native(spec, number | X32_BIT, args)
            }));
        }
    }
    lay_out(&filters.each_ref().map(|(name, _)| *name), &rows)
}

type MakeCall<'a> = &'a dyn Fn(FilterSpec, u32, [u64; 6]) -> Call;

/// All numbers through one entry. Named calls get a line each; others are drawn together.
fn stretch(filters: &[(&str, Filter)], entry: Option<&str>, call: MakeCall<'_>) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut from = 0;
    for number in NUMBERS {
        let syscall = filters
            .first()
            .and_then(|(_, filter)| Syscall::numbered(filter.spec.arch, number))
            .filter(|_| entry.is_none());
        let name = match syscall {
            Some(syscall) => syscall.name(),
            None => entry.unwrap_or("-"),
        };
        let verdicts: Vec<String> = filters
            .iter()
            .map(|(_, filter)| {
                let decision = syscall.and_then(|syscall| rules::decision(filter.spec, syscall));
                let found: BTreeSet<_> = arguments(decision)
                    .map(|args| filter.program.run(&call(filter.spec, number, args)))
                    .map(|run| run.verdict.name())
                    .collect();
                found.into_iter().collect::<Vec<_>>().join("|")
            })
            .collect();
        match rows.last_mut() {
            Some(last) if syscall.is_none() && last.name == name && last.verdicts == verdicts => {
                last.numbers = format!("{from}-{number}");
            }
            _ => {
                from = number;
                rows.push(Row {
                    numbers: number.to_string(),
                    name: name.to_owned(),
                    verdicts,
                });
            }
        }
    }
    rows
}

/// Arguments that bring out every verdict that `decision` can come to.
fn arguments(decision: Option<Decision>) -> impl Iterator<Item = [u64; 6]> {
    let values = decision.map_or_else(|| vec![0, 1, u64::MAX], telling_values_for);
    let seconds = values.clone();
    values.into_iter().flat_map(move |first| {
        seconds.clone().into_iter().flat_map(move |second| {
            // In the second shape all but the family vary, for it is a socket's first.
            [
                [first, second, first, second, 0, 0],
                [2, first, second, second, 0, 0],
            ]
        })
    })
}

/// One verdict when all specs agree, otherwise one for each of them.
fn lay_out(specs: &[&str], rows: &[Row]) -> String {
    let mut text = String::new();
    for Row {
        numbers,
        name,
        verdicts,
    } in rows
    {
        write!(text, "{numbers:7} {name:23}").unwrap();
        match verdicts.as_slice() {
            [first, rest @ ..] if rest.iter().all(|other| other == first) => {
                write!(text, " {first}").unwrap();
            }
            several => {
                for (spec, verdict) in specs.iter().zip(several) {
                    write!(text, " {spec}:{verdict}").unwrap();
                }
            }
        }
        text.push('\n');
    }
    text
}
