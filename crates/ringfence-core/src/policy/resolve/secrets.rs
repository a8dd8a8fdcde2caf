//! What is hidden wherever it is found.

use std::path::Path;

use super::{Builder, OnAbsent, Seen, lists};
use crate::origin::{BuiltIn, Origin};
use crate::path::AbsPath;
use crate::policy::lists::Relocated;
use crate::policy::{Access, Found};
use crate::settings::SocketName;

/// What a program needs that was granted the screen.
const SCREEN: (&str, &str) = ("x11", "~/.Xauthority");

impl Builder<'_> {
    pub(super) fn secrets(&mut self) {
        let sockets = self.entries(|keys| &keys.unix_sockets);
        let screen = sockets
            .iter()
            .any(|socket| matches!(socket.value, SocketName::Known(name) if name == SCREEN.0));
        for path in lists::SECRETS {
            if !screen || *path != SCREEN.1 {
                self.listed(path, Access::None, BuiltIn::Secrets);
            }
        }
        for runtime in self.place.runtimes.clone() {
            for name in lists::RUNTIME_SECRETS {
                let origin = Origin::BuiltIn(BuiltIn::Secrets);
                self.rule(&runtime.join(name), Access::None, origin, OnAbsent::Hide);
            }
        }
        self.relocated();
        for own in self.place.own.clone() {
            let origin = Origin::BuiltIn(BuiltIn::Secrets);
            self.rule(own.as_path(), Access::None, origin, OnAbsent::Hide);
        }
    }

    /// What the caller's variables say is elsewhere. Only what is there: nobody is kept from making
    /// something by a name that a variable has put together.
    fn relocated(&mut self) {
        for (name, path) in self.place.secrets.clone() {
            let mut known = lists::SECRET_VARIABLES.iter();
            let known = known.find(|(variable, _)| *variable == name);
            match known.map(|(_, relocated)| *relocated) {
                Some(Relocated::Base(usual)) => self.rebased(usual, &path),
                Some(Relocated::Directory) => self.hide(&path, Found::Directory),
                Some(Relocated::File | Relocated::Files) => self.hide(&path, Found::File),
                None => {}
            }
        }
    }

    fn rebased(&mut self, usual: &str, base: &Path) {
        let in_home = usual.trim_start_matches("~/").trim_end_matches('/');
        let home = self.place.home.as_ref();
        if home.is_some_and(|home| home.below(in_home).as_path() == base) {
            return;
        }
        // One look, where nothing is there at all.
        if !matches!((self.look)(base), Seen::At(_, Found::Directory)) {
            return;
        }
        let names = lists::SECRETS.iter();
        for name in names.filter_map(|path| path.strip_prefix(usual)) {
            let path = base.join(name);
            for found in [Found::Directory, Found::File] {
                self.hide(&path, found);
            }
        }
    }

    /// Hides what is there, if it is what it should be: people also say `/dev/null`.
    fn hide(&mut self, path: &Path, wanted: Found) {
        if let Seen::At(at, found) = (self.look)(path)
            && found == wanted
            && !self.is_needed(&at)
        {
            let origin = Origin::BuiltIn(BuiltIn::Secrets);
            self.rule_for(at, found, Access::None, origin);
        }
    }

    /// Whether a directory holds so much that no session could do without it.
    fn is_needed(&self, at: &AbsPath) -> bool {
        let os = self.place.os;
        let system = lists::strict_system_paths(os);
        let lists = [
            system.executable,
            system.read_only,
            system.read_write,
            lists::temporary_directories(os),
        ];
        let mut listed = lists.into_iter().flatten();
        let home = self.place.home.as_ref();
        at.covers(&self.place.project)
            || home.is_some_and(|home| at.covers(home))
            || listed.any(|path| Path::new(path).starts_with(at.as_path()))
    }
}
