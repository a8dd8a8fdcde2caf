//! What is ringfence's own, and no session's to change: whoever changes it is outside with the next
//! start.

use super::Builder;
use crate::origin::{BuiltIn, Layer, Origin};
use crate::policy::{Access, Content, FileRule, Found};

impl Builder<'_> {
    /// Comes last: it is about what everybody else has given.
    pub(super) fn own(&mut self) {
        self.own_directories();
        self.own_program();
    }

    /// Settings and state are hidden by the list of secrets, also below what is given around them. What
    /// is left is whoever names them.
    fn own_directories(&mut self) {
        let is_given = |rule: &&FileRule| {
            let mut own = self.place.own.iter();
            rule.access == Access::Write
                && rule.origin.layer() != Layer::BuiltIn
                && own.any(|own| own.covers(&rule.path))
        };
        let given = self.settled.rules().iter().filter(is_given);
        let given: Vec<_> = given
            .map(|rule| (rule.path.clone(), rule.origin.clone()))
            .collect();
        for (path, origin) in given {
            let message = format!("{path} is ringfence's own, and no session may write it");
            let help = "leave it out: whoever can change ringfence's settings or state is outside with \
                        the next start";
            self.complain(origin, message, Some(help.to_owned()));
        }
    }

    /// The program that starts sessions, where a session could put another one in its place.
    ///
    /// Its file cannot be written while it runs, by whatever name: the kernel sees to that. It is the
    /// name that has to be held, and the directories above it, as for every rule inside a grant.
    fn own_program(&mut self) {
        let Some(program) = self.place.program.clone() else {
            return;
        };
        let around = self.settled.covering(&program);
        let Some(rule) = around.last() else { return };
        if rule.access != Access::Write || rule.content != Content::Host {
            return;
        }
        if rule.path == program {
            let origin = rule.origin.clone();
            let message =
                format!("{program} is the program that is running, and no session may write it");
            let help = "leave it out; to build it inside, start a copy of it that lies elsewhere";
            return self.complain(origin, message, Some(help.to_owned()));
        }
        let origin = Origin::BuiltIn(BuiltIn::Program);
        self.rule_for(program, Found::File, Access::Execute, origin);
    }
}
