//! Links on the way to what is granted.
//!
//! A grant holds for what a link leads to, as whoever wrote it sees it. A link in a directory that
//! the session may write is no link of theirs: the session before this one may have put it there, to
//! be given what it leads to.

use std::path::Path;

use super::{Builder, Seen};
use crate::origin::{Layer, Origin};
use crate::path::AbsPath;
use crate::policy::{Access, Content, FileRule, FileRules, Found, SocketGrant};

/// A grant that was written with a link in it.
#[derive(Debug)]
pub(super) struct Followed {
    written: AbsPath,
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
        let written = AbsPath::lexical(path).ok().filter(|path| path != seen);
        let Some(written) = written else {
            return false;
        };
        self.followed.push(Followed {
            written,
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
            let planted = self.leads_through(&grant.written, |directory| {
                let mut given = all.iter().filter(|other| other.access == Access::Write);
                let around = self.settled.covering(directory);
                around.last().is_some_and(|rule| is_written(rule))
                    || given.any(|other| other.canonical.covers(directory))
            });
            if !planted {
                self.alias(
                    grant.written.as_path(),
                    &grant.canonical,
                    grant.access,
                    &grant.origin,
                );
                let (path, origin) = (grant.canonical.clone(), grant.origin.clone());
                self.rule_for(path, grant.found, grant.access, origin);
            } else if grant.origin.layer() != Layer::BuiltIn {
                self.refuse_link(&grant.written, &grant.canonical, grant.origin.clone());
            }
        }
    }

    /// The same for sockets.
    pub(super) fn followed_sockets(&mut self, files: &FileRules, sockets: &[SocketGrant]) {
        for (written, path) in std::mem::take(&mut self.linked_sockets) {
            let planted = self.leads_through(&written, |directory| {
                files.access(directory).rule.is_some_and(is_written)
            });
            let socket = sockets.iter().find(|socket| socket.path == path);
            if let Some(socket) = socket.filter(|_| planted) {
                self.refuse_link(&written, &path, socket.origin.clone());
            }
        }
    }

    fn refuse_link(&mut self, written: &AbsPath, canonical: &AbsPath, origin: Origin) {
        let message = format!(
            "{written} is not given: it leads to {canonical} through a link that a command may have made"
        );
        let help = format!("if that is what you mean, name `{canonical}` itself");
        self.complain(origin, message, Some(help));
    }

    /// Whether a link on the way to a path is in a directory of which the answer is yes. It is also yes
    /// where a link does not show, because it was left again by `..`.
    fn leads_through(&self, path: &AbsPath, may_be_planted: impl Fn(&AbsPath) -> bool) -> bool {
        let mut on_the_way: Vec<&Path> = path.above().collect();
        on_the_way.reverse();
        let mut shown = false;
        let mut directory: Option<AbsPath> = None;
        for step in on_the_way.into_iter().chain([path.as_path()]) {
            let Seen::At(seen, _) = (self.look)(step) else {
                return true;
            };
            let straight = |directory: &AbsPath| {
                let name = step.file_name().unwrap_or_default();
                seen.as_path() == directory.as_path().join(name)
            };
            if let Some(directory) = directory.filter(|directory| !straight(directory)) {
                shown = true;
                if may_be_planted(&directory) {
                    return true;
                }
            }
            directory = Some(seen);
        }
        !shown
    }
}

/// Whether the session may make links there that stay. Whoever may write everything needs none.
fn is_written(rule: &FileRule) -> bool {
    let everything = rule.path.bytes() == b"/";
    rule.access == Access::Write && rule.content == Content::Host && !everything
}
