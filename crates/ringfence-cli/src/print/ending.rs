//! What happened in a session that somebody should know of.

use std::fmt::Write as _;

use ringfence::changes::{Changes, FileChange, Listed, MOST_PROGRAMS};
use ringfence::launch::{Attempt, Cause, Report};
use ringfence::{Denial, Denied, IndexFound, IndexState};
use ringfence_core::text::{printable, printable_path};

/// Paths of one kind that are named; the report has more of them.
const MOST_NAMED: usize = 10;
/// How many refused hosts are named.
const MOST_REFUSED: usize = 5;

/// What must be said even without `-v`: what is not as it was left, and what a program may only have
/// called a read-only file system.
pub(crate) fn told(report: &Report) -> String {
    let mut out = String::new();
    for found in &report.names {
        let shown = printable_path(&found.path);
        let now = match &found.moved_to {
            Some(moved) => format!("it is now {}", printable_path(moved)),
            None if found.removed => {
                "there was no room to put it aside, so it was removed".to_owned()
            }
            None => "look at it before anything runs it".to_owned(),
        };
        line(
            &mut out,
            &format!("{shown} is protected and was made inside; {now}"),
        );
    }
    for path in report.tried.iter().take(MOST_NAMED) {
        let fix = printable(&Denial::of_name(path).fix);
        let fix = if fix.starts_with("--") {
            format!("`{fix}` allows it")
        } else {
            format!("`{fix}` says why")
        };
        let shown = printable_path(path);
        // Something else was to take its place.
        let act = match path.symlink_metadata() {
            Ok(_) => "replacing",
            Err(_) => "making",
        };
        line(
            &mut out,
            &format!("{shown} is protected, and {act} it was refused: {fix}"),
        );
    }
    more(&mut out, report.tried.len(), report.tried.len());
    for denial in refused_sockets(report) {
        let (target, fix) = (printable(&denial.target), printable(&denial.fix));
        let text = format!("{target} is a socket of the host, and was refused: `{fix}` allows it");
        line(&mut out, &text);
    }
    for index in &report.indexes {
        line(&mut out, &staged(index));
    }
    let more = report.not_held.len().saturating_sub(MOST_NAMED);
    for path in report.not_held.iter().take(MOST_NAMED) {
        let path = printable_path(path);
        line(
            &mut out,
            &format!(
                "{path} is protected or hidden and could be held no longer: something stands there \
                 that cannot be mounted over (a link, say), somebody inside had it open, or nobody may look; look at it before \
                 anything runs it"
            ),
        );
    }
    if more > 0 {
        line(&mut out, &format!("and so could {more} more"));
    }
    match report.cause {
        Cause::WallTime => line(
            &mut out,
            "ended, since it took longer than its limit (`--limit wall=...`)",
        ),
        Cause::Limit { limit, .. } => line(
            &mut out,
            &format!("ended, since it used more than its limit (`--limit {limit}=...`)"),
        ),
        Cause::NameMade => line(
            &mut out,
            "ended, since a protected name was made in spite of its rule",
        ),
        Cause::NameNotHeld => line(
            &mut out,
            "ended, since a protected name could be held no longer",
        ),
        _ => {}
    }
    out
}

/// Hosts that were refused: a program often says only that something did not work.
pub(crate) fn refused_hosts(attempts: &[Attempt]) -> String {
    let mut out = String::new();
    let mut known: Vec<String> = Vec::new();
    // Those that are only not listed need no reason, and share a line.
    let mut unlisted = Vec::new();
    let mut without_port = None;
    let mut others = 0;
    for attempt in attempts {
        let Some(denial) = Denial::at_gate(attempt) else {
            continue;
        };
        let target = printable(&denial.target);
        if known.contains(&target) {
            continue;
        }
        known.push(target.clone());
        match &attempt.fix {
            Some(fix) if names(fix, &attempt.host) => {
                if attempt.port == 0 {
                    without_port.get_or_insert_with(|| target.clone());
                }
                unlisted.push((target, printable(fix)));
            }
            fix => {
                others += 1;
                if others <= MOST_REFUSED {
                    line(&mut out, &for_its_reason(&target, attempt, fix.as_deref()));
                }
            }
        }
    }
    more_refused(&mut out, others);
    if unlisted.is_empty() {
        return out;
    }
    let shown = unlisted.get(..MOST_REFUSED).unwrap_or(&unlisted);
    let (hosts, mut flags): (Vec<&str>, Vec<&str>) = shown
        .iter()
        .map(|(host, flag)| (host.as_str(), flag.as_str()))
        .unzip();
    let mut seen = Vec::new();
    flags.retain(|flag| {
        let new = !seen.contains(flag);
        seen.push(*flag);
        new
    });
    let more = match unlisted.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let other_ports = without_port.map_or_else(String::new, |host| {
        format!("; for a port other than 80 and 443 add it, as in `--allow-host {host}:22`")
    });
    let (hosts, flags) = (hosts.join(", "), flags.join(" "));
    line(
        &mut out,
        &format!("refused on the network: {hosts}{more} (`{flags}` allows this{other_ports})"),
    );
    out
}

/// Whether a flag names the host that was asked for, so that there is nothing more to say.
fn names(flag: &str, host: &str) -> bool {
    let rest = flag.strip_prefix("--allow-host ");
    let rest = rest.and_then(|rest| {
        // As part of a flag an address of version 6 has brackets.
        let bare = rest.strip_prefix('[').unwrap_or(rest);
        bare.strip_prefix(host.trim_matches(['[', ']']))
    });
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ']']))
}

/// A host that was refused although it is listed, or that no list can allow.
fn for_its_reason(target: &str, attempt: &Attempt, fix: Option<&str>) -> String {
    let reason = printable(&attempt.rule);
    let target = if reason.starts_with(target) {
        String::new()
    } else {
        format!("{target}: ")
    };
    let fix = fix.map_or_else(String::new, |fix| format!("; add `{}`", printable(fix)));
    format!("refused on the network: {target}{reason}{fix}")
}

fn more_refused(out: &mut String, count: usize) {
    if let Some(more) = count.checked_sub(MOST_REFUSED).filter(|more| *more > 0) {
        line(out, &format!("refused on the network: {more} more"));
    }
}

/// Sockets that a command missed: where it did not fail, it only looked whether they are there.
fn refused_sockets(report: &Report) -> impl Iterator<Item = &Denial> {
    let missed = report.denials.iter().filter(|denial| {
        denial.what == Denied::UnixSocket
            && denial.fix.starts_with("--")
            && report.cause.exit_status() != 0
    });
    missed.take(MOST_NAMED)
}

/// What somebody has to know of an index before git checks out what it says.
fn staged(index: &IndexFound) -> String {
    let path = printable_path(&index.path);
    let named = |listed: &Listed| {
        let shown = listed.paths.iter().take(MOST_NAMED);
        let mut shown: Vec<String> = shown.map(|path| printable(path)).collect();
        if let Some(more) = listed
            .count
            .checked_sub(shown.len())
            .filter(|more| *more > 0)
        {
            shown.push(format!("{more} more"));
        }
        shown.join(", ")
    };
    let what = match index.state {
        _ if index.refused.count > 0 => format!(
            "has paths that git itself never puts there, and would have written: {}",
            named(&index.refused)
        ),
        IndexState::Whole => {
            return format!(
                "{path} has something else staged for names that run later: {}; the next commit or \
                 checkout takes it: see `git diff --cached`, and `git restore --staged PATH`",
                named(&index.protected)
            );
        }
        IndexState::Foreign => {
            return format!(
                "{path} is no index, and git stops at it; `git reset` needs it removed"
            );
        }
        IndexState::Damaged => "is damaged, and git could find anything in it".to_owned(),
        IndexState::Odd => {
            "is not a plain file with one name that can be read, as git makes it".to_owned()
        }
    };
    let own = index.aside.iter().find(|aside| aside.path == index.path);
    let now = match own.map(|aside| &aside.moved_to) {
        Some(Some(moved)) => {
            let moved = printable_path(moved);
            format!("it is now {moved}, and `git reset` makes a new one")
        }
        Some(None) if own.is_some_and(|aside| aside.removed) => {
            "there was no room to put it aside, so it was removed; `git reset` makes a new one"
                .to_owned()
        }
        Some(None) | None if index.aside.is_empty() => {
            "remove it before git checks anything out".to_owned()
        }
        Some(None) | None => "what it shares entries with was put aside".to_owned(),
    };
    format!("{path} {what}; {now}")
}

/// What is said with `-v`.
pub(crate) fn in_detail(report: &Report) -> String {
    let mut out = String::new();
    if let Some(changes) = &report.changes {
        changed(&mut out, changes);
    }
    out
}

fn changed(out: &mut String, changes: &Changes) {
    for change in &changes.files {
        line(out, &runs_later(change));
    }
    for change in changes.programs.files.iter().take(MOST_NAMED) {
        line(out, &runs_later(change));
    }
    more(out, changes.programs.files.len(), changes.programs.count);
    if changes.programs.not_compared > 0 {
        let (beyond, most) = (changes.programs.not_compared, MOST_PROGRAMS);
        line(
            out,
            &format!("{beyond} programs of the project were not compared: {most} are at most"),
        );
    }
    let named = "is obeyed by programs outside, and was made or changed";
    listed(out, &changes.protected, named);
    let knobs = "makes git run or obey something, and was made or changed";
    listed(out, &changes.git_knobs, knobs);
    listed(
        out,
        &changes.run_later,
        "runs later and was made or changed",
    );
    for made in changes.repositories.iter().take(MOST_NAMED) {
        let path = printable(&made.path);
        let knobs: Vec<String> = made.knobs.iter().map(|knob| printable(knob)).collect();
        let knobs = if knobs.is_empty() {
            String::new()
        } else {
            format!(", and git would obey {} in it", knobs.join(", "))
        };
        line(out, &format!("{path} is a new repository{knobs}"));
    }
    more(out, changes.repositories.len(), changes.repositories.len());
    for moved in changes.references.moved.iter().take(MOST_NAMED) {
        let (name, repository) = (printable(&moved.name), printable(&moved.repository));
        let leads = |to: &Option<String>| printable(to.as_deref().unwrap_or("nothing"));
        let (before, after) = (leads(&moved.before), leads(&moved.after));
        line(
            out,
            &format!("{name} in {repository} was moved: {before} is now {after}"),
        );
    }
    more(
        out,
        changes.references.moved.len(),
        changes.references.count,
    );
    for link in changes.git_links.made.iter().take(MOST_NAMED) {
        let (path, leads_to) = (printable(&link.path), printable(&link.leads_to));
        line(
            out,
            &format!("{path} is a new link, and git may write to {leads_to} through it"),
        );
    }
    more(out, changes.git_links.made.len(), changes.git_links.count);
    listed(out, &changes.set_id, "runs with another's rights");
    listed(
        out,
        &changes.hard_links,
        "has another name outside the project",
    );
    listed(
        out,
        &changes.unseen,
        "could not be looked into: what changed there is not told (`chmod u+rx` opens it)",
    );
    if !changes.complete && changes.unseen.count == 0 {
        line(
            out,
            "not all of the project was looked at: it is too large, or something in it cannot be read",
        );
    }
}

fn runs_later(change: &FileChange) -> String {
    let digest = |digest: &str| {
        let short = digest.get(..16).filter(|start| is_hexadecimal(start));
        printable(short.unwrap_or(digest))
    };
    let path = printable(&change.path);
    let how = match (&change.before, &change.after) {
        (Some(before), Some(after)) => {
            format!("{} is now {}", digest(before), digest(after))
        }
        (None, Some(after)) => format!("was not there, is now {}", digest(after)),
        (Some(before), None) => format!("was {}, is gone", digest(before)),
        (None, None) => "was not there, and is not".to_owned(),
    };
    format!("{path} runs later and has changed: {how}")
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn listed(out: &mut String, listed: &Listed, what: &str) {
    for path in listed.paths.iter().take(MOST_NAMED) {
        line(out, &format!("{} {what}", printable(path)));
    }
    more(out, listed.paths.len(), listed.count);
}

/// Says how many were not named here, and how to have those named that a report keeps.
fn more(out: &mut String, kept: usize, count: usize) {
    let unnamed = count.saturating_sub(MOST_NAMED);
    let in_report = kept.saturating_sub(MOST_NAMED);
    if unnamed > 0 {
        let how = match in_report {
            0 => String::new(),
            _ if in_report == unnamed => "; a `--report FILE` names them".to_owned(),
            _ => format!("; a `--report FILE` names {in_report} of them"),
        };
        line(out, &format!("and {unnamed} more{how}"));
    }
}

fn line(out: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "ringfence: {text}");
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use ringfence::launch::{Outcome, Way};

    use super::*;

    fn attempt(host: &str, port: u16, rule: &str, fix: Option<&str>) -> Attempt {
        Attempt {
            at: SystemTime::UNIX_EPOCH,
            way: Way::Connect,
            host: host.to_owned(),
            port,
            verdict: Outcome::Refused,
            rule: rule.to_owned(),
            fix: fix.map(str::to_owned),
            times: 1,
            sent: 0,
            received: 0,
            milliseconds: 0,
        }
    }

    #[test]
    fn a_refused_host_is_told_with_the_flag_that_is_missing() {
        let unlisted = |host, port, flag| attempt(host, port, "not listed", Some(flag));
        let leads = "db.test:5432 leads to 10.0.0.7, which is not a public address (private)";
        for (attempts, expected) in [
            (
                vec![unlisted("a.test", 443, "--allow-host a.test")],
                "a.test:443 (`--allow-host a.test` allows this)\n",
            ),
            (
                vec![
                    unlisted("a.test", 443, "--allow-host a.test"),
                    unlisted("a.test", 80, "--allow-host a.test"),
                    unlisted("2001:db8::1", 22, "--allow-host [2001:db8::1]:22"),
                ],
                "a.test:443, a.test:80, 2001:db8::1:22 \
                 (`--allow-host a.test --allow-host [2001:db8::1]:22` allows this)\n",
            ),
            (
                vec![unlisted("a.test", 0, "--allow-host a.test")],
                "a.test (`--allow-host a.test` allows this; for a port other than 80 and 443 add it, \
                 as in `--allow-host a.test:22`)\n",
            ),
            // Allowing it again would change nothing.
            (
                vec![attempt(
                    "db.test",
                    5432,
                    leads,
                    Some("--allow-host 10.0.0.7:5432"),
                )],
                "db.test:5432 leads to 10.0.0.7, which is not a public address (private); \
                 add `--allow-host 10.0.0.7:5432`\n",
            ),
            (
                vec![attempt(
                    "localhost",
                    5432,
                    "not listed",
                    Some("--loopback-out 5432"),
                )],
                "localhost:5432: not listed; add `--loopback-out 5432`\n",
            ),
            (
                vec![attempt(
                    "a.test",
                    443,
                    "the TLS hello has no server name",
                    None,
                )],
                "a.test:443: the TLS hello has no server name\n",
            ),
        ] {
            let expected = format!("ringfence: refused on the network: {expected}");
            assert_eq!(refused_hosts(&attempts), expected);
        }
        assert_eq!(refused_hosts(&[]), "");
    }

    #[test]
    fn what_runs_later_is_told_with_what_it_was() {
        let told = |before: Option<&str>, after: Option<&str>| {
            runs_later(&FileChange {
                path: "Makefile".to_owned(),
                before: before.map(str::to_owned),
                after: after.map(str::to_owned),
            })
        };
        let start = "Makefile runs later and has changed: ";
        let digest = "0123456789abcdef0123";
        assert_eq!(
            told(None, Some(digest)),
            format!("{start}was not there, is now 0123456789abcdef")
        );
        assert_eq!(
            told(Some(digest), None),
            format!("{start}was 0123456789abcdef, is gone")
        );
        assert_eq!(
            told(Some("a link"), Some(digest)),
            format!("{start}a link is now 0123456789abcdef")
        );
    }

    /// A report keeps the first of a list, and there may be none.
    #[test]
    fn what_is_not_named_is_where_it_is_said_to_be() {
        for (kept, count, said) in [
            (10, 10, ""),
            (12, 12, "and 2 more; a `--report FILE` names them"),
            (100, 250, "and 240 more; a `--report FILE` names 90 of them"),
            (10, 11, "and 1 more"),
        ] {
            let mut out = String::new();
            more(&mut out, kept, count);
            let line = out.trim_end().trim_start_matches("ringfence: ");
            assert_eq!(line, said, "{kept} of {count}");
        }
    }
}
