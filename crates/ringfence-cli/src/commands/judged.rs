//! `ringfence run --shell-policy`: the command is read before anything starts.
//!
//! The words of the command are written as one line of bash that would run exactly them, and read as
//! such: wrappers, shells and the code in their arguments are found as they are in any other text.

use std::ffi::OsString;

use ringfence_core::policy::Policy;
use ringfence_core::text::printable;
use ringfence_shell::{Ir, Judgement, RuleSet, command_line, judge};

use crate::exit::Exit;
use crate::output::{Colour, complain, tell};
use crate::print::judgement::{line, objection};

/// What was said of a command: for the record.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub(crate) rules: RuleSet,
    pub(crate) judgement: Judgement,
    pub(crate) text: String,
}

impl Judged {
    /// Reads `command` and judges it.
    pub(crate) fn new(command: &[OsString], rules: RuleSet, policy: &Policy) -> Result<Self, Exit> {
        let words: Option<Vec<&str>> = command.iter().map(|word| word.to_str()).collect();
        let Some(words) = words else {
            let message = "the command is not UTF-8, so nobody can say what it would run";
            complain(message, None);
            return Err(Exit::Refused);
        };
        // Checked with the rest of the settings; a rule that is wrong stops here too.
        let own = ringfence::shell::rules(policy.shell_rules()).map_err(|complaints| {
            for complaint in complaints {
                complain(&complaint.message, complaint.help.as_deref());
            }
            Exit::Usage
        })?;
        let text = command_line(&words);
        let judgement = judge(&Ir::from_bash(&text), rules, &own);
        Ok(Self {
            rules,
            judgement,
            text,
        })
    }

    /// Says what is objected to, if anything is, in one line for the record.
    pub(crate) fn objection(&self) -> Option<String> {
        let line = line(&self.judgement, self.rules)?;
        let colour = Colour::of_errors();
        match objection(&self.judgement, self.rules, "command", &self.text, colour) {
            Some(shown) => tell(&shown),
            None => complain(&printable(&line), None),
        }
        tell("ringfence: nothing was started\n");
        Some(line)
    }
}
