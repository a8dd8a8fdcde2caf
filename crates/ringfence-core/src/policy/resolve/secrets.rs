//! What is hidden wherever it is found.

use super::{Builder, OnAbsent, lists};
use crate::origin::{BuiltIn, Origin};
use crate::policy::Access;
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
        for own in self.place.own.clone() {
            let origin = Origin::BuiltIn(BuiltIn::Secrets);
            self.rule(own.as_path(), Access::None, origin, OnAbsent::Hide);
        }
    }
}
