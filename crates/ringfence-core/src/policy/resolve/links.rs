//! Links on the way to what is granted.
//!
//! A grant holds for what a link leads to, as whoever wrote it sees it. A link in a directory that
//! the session may write is no link of theirs: the session before this one may have put it there, to
//! be given what it leads to.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use super::{Builder, Seen, lists};
use crate::origin::{Layer, Origin};
use crate::path::AbsPath;
use crate::policy::{Access, Content, FileRule, FileRules, Found, SocketGrant};

/// A grant that was written with a link in it.
#[derive(Debug)]
pub(super) struct Followed {
    written: PathBuf,
    /// The same without `..`, as far as text tells.
    named: AbsPath,
    canonical: AbsPath,
    found: Found,
    access: Access,
    origin: Origin,
}

impl Builder<'_> {
    /// Keeps a grant for later if there is a link on its way; whether there is.
    pub(super) fn follow(
        &mut self,
        path: &Path,
        seen: &AbsPath,
        found: Found,
        access: Access,
        origin: &Origin,
    ) -> bool {
        // Nearly always; and nothing is opened by hiding.
        let straight = path.as_os_str().as_encoded_bytes() == seen.bytes();
        if straight || access == Access::None {
            return false;
        }
        let named = AbsPath::lexical(path).ok().filter(|path| path != seen);
        let Some(named) = named else {
            return false;
        };
        self.followed.push(Followed {
            written: path.to_owned(),
            named,
            canonical: seen.clone(),
            found,
            access,
            origin: origin.clone(),
        });
        true
    }

    /// Lets in what was kept, once it is known what the session may write.
    pub(super) fn followed(&mut self) {
        let all = std::mem::take(&mut self.followed);
        for grant in &all {
            let listed = grant.origin.layer() == Layer::BuiltIn;
            let planted = self.leads_through(&grant.written, &grant.canonical, |directory| {
                let mut given = all.iter().filter(|other| other.access == Access::Write);
                let around = self.settled.covering(directory);
                let around = around.last();
                // Whoever may write everything needs no link to what a list would let him read.
                let everything = around.is_some_and(|rule| rule.path.bytes() == b"/");
                around.is_some_and(|rule| is_written(rule)) && !(listed && everything)
                    || given.any(|other| other.canonical.covers(directory))
                    || self.was_written(directory)
            });
            if !planted {
                self.alias(
                    grant.named.as_path(),
                    &grant.canonical,
                    grant.access,
                    &grant.origin,
                );
                let (path, origin) = (grant.canonical.clone(), grant.origin.clone());
                self.rule_for(path, grant.found, grant.access, origin);
            } else if !listed {
                self.refuse_link(&grant.written, &grant.canonical, grant.origin.clone());
            }
        }
    }

    /// The same for sockets.
    pub(super) fn followed_sockets(&mut self, files: &FileRules, sockets: &[SocketGrant]) {
        for (written, path) in std::mem::take(&mut self.linked_sockets) {
            let planted = self.leads_through(&written, &path, |directory| {
                files.access(directory).rule.is_some_and(is_written) || self.was_written(directory)
            });
            let socket = sockets.iter().find(|socket| socket.path == path);
            if let Some(socket) = socket.filter(|_| planted) {
                self.refuse_link(&written, &path, socket.origin.clone());
            }
        }
    }

    /// Whether another session may have written there: one of a repository around this project, or one that had
    /// the host's temporary files, as everybody has.
    fn was_written(&self, directory: &AbsPath) -> bool {
        const ROOTS: [&str; 5] = [".git", ".hg", ".jj", ".ringfence", ".svn"];
        let home = self.place.home.as_ref();
        // Who lives there has links of his own there.
        let lives_in = |tree: &str| home.is_some_and(|home| home.is_in(tree));
        let mut shared = lists::temporary_directories(self.place.os).iter();
        if shared.any(|shared| directory.is_in(shared) && !lives_in(shared)) {
            return true;
        }
        // A home is no project unless somebody says so.
        let holds_home = |above: &AbsPath| home.is_some_and(|home| above.covers(home));
        let is_root = |above: &AbsPath| {
            let is_there = |root: &str| (self.look)(above.below(root).as_path()) != Seen::Absent;
            ROOTS.iter().any(|root| is_there(root))
        };
        std::iter::successors(self.place.project.parent(), AbsPath::parent)
            .take_while(|above| !holds_home(above))
            .any(|above| above.covers(directory) && is_root(&above))
    }

    fn refuse_link(&mut self, written: &Path, canonical: &AbsPath, origin: Origin) {
        let written = crate::text::printable_path(written);
        let message = format!(
            "{written} is not given: it leads to {canonical} through a link that a command may have made"
        );
        let help = format!("if that is what you mean, name `{canonical}` itself");
        self.complain(origin, message, Some(help));
    }

    /// Whether a link on the way to a path is in a directory of which the answer is yes: a link in the path,
    /// or in what one of them says. It is also yes where the way does not lead to what was seen.
    fn leads_through(
        &self,
        written: &Path,
        canonical: &AbsPath,
        may_be_planted: impl Fn(&AbsPath) -> bool,
    ) -> bool {
        const MOST_LINKS: usize = 40;
        let mut links = 0;
        let mut at = AbsPath::root();
        let mut left = steps(written);
        while let Some(step) = left.pop() {
            let Some(name) = step else {
                at = at.parent().unwrap_or_else(AbsPath::root);
                continue;
            };
            let next = at.below(&name);
            let Some(target) = self.eyes.link(next.as_path()) else {
                at = next;
                continue;
            };
            links += 1;
            if links > MOST_LINKS || may_be_planted(&at) {
                return true;
            }
            if target.has_root() {
                at = AbsPath::root();
            }
            left.extend(steps(&target));
        }
        at != *canonical
    }
}

/// The names in a path, and `None` for each step up, last first.
fn steps(path: &Path) -> Vec<Option<OsString>> {
    let steps = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(Some(name.to_owned())),
        Component::ParentDir => Some(None),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    let mut steps: Vec<_> = steps.collect();
    steps.reverse();
    steps
}

/// Whether the session may make links there that stay.
fn is_written(rule: &FileRule) -> bool {
    rule.access == Access::Write && rule.content == Content::Host
}
