//! Files that lead other version control than git to a repository elsewhere, whose hooks and extensions
//! it obeys then.

use std::path::Path;

use super::{Builder, Seen};
use crate::origin::{BuiltIn, Located, Origin};
use crate::path::AbsPath;
use crate::policy::{Access, Found};
use crate::settings::ProjectName;

/// A directory, and a file that leads elsewhere, which is protected where that directory is: whoever makes
/// a repository writes it, too.
const POINTERS: &[(&str, &str)] = &[
    // Whether the next one counts, and what it is relative to.
    (".hg", ".hg/requires"),
    (".sl", ".sl/requires"),
    (".jj/repo/store", ".jj/repo/store/git_target"),
];

/// The same, but only sharing another repository writes these.
const SHARED: &[&str] = &[".hg/sharedpath", ".sl/sharedpath"];

/// A directory, or a file that says where it is.
const WORKSPACE: &str = ".jj/repo";

impl Builder<'_> {
    /// What is protected in a tree although not every tree has the name.
    pub(super) fn pointers(&mut self, tree: &AbsPath, allowed: &[Located<ProjectName>]) {
        let seen = |name: &str| (self.look)(tree.below(name).as_path());
        let known = POINTERS
            .iter()
            .filter(|(around, _)| seen(around) != Seen::Absent);
        let mut names: Vec<&str> = known.map(|(_, name)| *name).collect();
        names.extend(SHARED);
        if matches!(seen(WORKSPACE), Seen::At(_, Found::File)) {
            names.push(WORKSPACE);
        }
        names.retain(|name| !allowed.iter().any(|allow| allow.value.0 == Path::new(name)));
        for name in names {
            let origin = Origin::BuiltIn(BuiltIn::Protected);
            self.name(tree, Path::new(name), Access::Execute, origin);
        }
    }
}
