//! Commands with their codes and verdicts, as data: `tests/corpus/*.txt`, one file per construct.
//!
//! A line is `DEFAULT/RELAXED/VERIFY <tab> CODES <tab> TEXT`; a verdict is `allow` or the code of the
//! denial, codes are joined by commas or `-`, and `␤` in a text is a new line. To add cases, write them
//! with any codes, run with `RINGFENCE_BLESS=1`, which fills in the codes and nothing else, and read
//! the difference.

#![expect(
    clippy::panic,
    clippy::tests_outside_test_module,
    reason = "an integration test is all test"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use ringfence_shell::{Code, IR_VERSION, Ir, RuleSet, decide};

/// The corpus never shrinks below this.
const FEWEST: usize = 600;

struct Case {
    verdicts: String,
    codes: String,
    text: String,
}

fn cases(content: &str) -> Vec<Case> {
    content
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut columns = line.splitn(3, '\t').map(str::to_owned);
            let mut column = || {
                columns
                    .next()
                    .unwrap_or_else(|| panic!("three columns: {line}"))
            };
            Case {
                verdicts: column(),
                codes: column(),
                text: column(),
            }
        })
        .collect()
}

fn codes(ir: &Ir) -> String {
    let names: Vec<_> = ir.codes().into_iter().map(Code::name).collect();
    if names.is_empty() {
        "-".to_owned()
    } else {
        names.join(",")
    }
}

fn verdicts(ir: &Ir) -> String {
    let of = |rules| decide(ir, rules).code().map_or("allow", Code::name);
    [RuleSet::Default, RuleSet::Relaxed, RuleSet::Verify]
        .map(of)
        .join("/")
}

#[test]
fn every_case_has_its_codes_and_verdicts() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let bless = std::env::var_os("RINGFENCE_BLESS").is_some();
    let mut paths: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let mut wrong = String::new();
    let mut count = 0;
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut blessed = String::new();
        for case in cases(&fs::read_to_string(&path).unwrap()) {
            count += 1;
            let text = case.text.replace('␤', "\n");
            let ir = Ir::from_bash(&text);
            let (found_codes, found_verdicts) = (codes(&ir), verdicts(&ir));
            if found_verdicts != case.verdicts {
                let why = ir
                    .refusal
                    .map(|refusal| format!(" ({refusal} at {})", refusal.span.start))
                    .unwrap_or_default();
                writeln!(
                    wrong,
                    "{name}: {}\n    {found_verdicts}{why}, not {}",
                    case.text, case.verdicts
                )
                .unwrap();
            }
            if !bless && found_codes != case.codes {
                writeln!(
                    wrong,
                    "{name}: {}\n    {found_codes}\n    not {}",
                    case.text, case.codes
                )
                .unwrap();
            }
            writeln!(blessed, "{}\t{found_codes}\t{}", case.verdicts, case.text).unwrap();
        }
        if bless {
            fs::write(&path, blessed).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= FEWEST, "only {count} cases");
}

#[test]
fn every_code_that_reading_can_give_is_in_the_corpus() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let all: String = fs::read_dir(directory)
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    // These come from elsewhere: a stored IR, and a user's rules.
    let outside = [Code::UserRule, Code::VersionMismatch];
    for code in Code::ALL.iter().filter(|code| !outside.contains(code)) {
        assert!(all.contains(code.name()), "{code} has no case");
    }
}

#[test]
fn another_version_is_denied_by_every_rule_set() {
    for version in [0, IR_VERSION + 1] {
        let mut ir = Ir::from_bash("ls");
        ir.version = version;
        for rules in RuleSet::ALL {
            assert_eq!(decide(&ir, *rules).code(), Some(Code::VersionMismatch));
        }
    }
}
