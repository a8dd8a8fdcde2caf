//! Which calls are asked about because they make a name.

use super::super::spec::{Creating, FilterSpec};
use super::expectations::both;
use super::worlds::Filter;

/// Of the ordinary calls, those that can make a name, and the one that is asked about beside them.
const CREATING: [&str; 9] = [
    "bind",
    "inotify_init1",
    "linkat",
    "mkdirat",
    "mknodat",
    "openat",
    "openat2",
    "renameat2",
    "symlinkat",
];

/// Whether a call is one that this filter asks about; the test below says that it does.
pub(super) fn are_asked(spec: FilterSpec, name: &str) -> bool {
    spec.creating == Creating::Asked && CREATING.contains(&name)
}

#[test]
fn only_what_makes_a_name_is_asked_about() {
    for base in both(FilterSpec::namespaces) {
        let asked = Filter::new(FilterSpec {
            creating: Creating::Asked,
            ..base.spec
        });
        for name in CREATING {
            assert_eq!(asked.says(name, &[u64::MAX; 6]), "ask", "{name}");
            assert_eq!(base.says(name, &[u64::MAX; 6]), "allow", "{name}");
        }
        // Reading, writing and truncating what is there, with the upper half of the register full.
        for flags in [0, 1, 2, 0o1000 | 1, 0o2000, 0o20_200_000, u64::MAX << 32] {
            assert_eq!(asked.says("openat", &[0, 0, flags]), "allow", "{flags:#o}");
        }
        for flags in [0o100, 0o101, 0o302, 0o100 | 1 << 40] {
            assert_eq!(asked.says("openat", &[0, 0, flags]), "ask", "{flags:#o}");
        }
        for name in ["unlinkat", "fchmodat", "truncate", "read", "statx"] {
            assert_eq!(asked.says(name, &[0; 6]), base.says(name, &[0; 6]));
        }
    }
}
