//! Reads a bash command before it runs, and says what it thinks of it.
//!
//! The cheap first layer in front of the sandbox: [`Ir::from_bash`] turns text into a versioned list of
//! everything that could run, with risk codes at their places; [`decide`] turns that into a verdict with
//! a reason and a way round it; [`write_targets`] names the files that would change; [`Rules`] adds a
//! user's own; [`hook`] speaks the formats of agents.
//!
//! Pure: no file is opened, nothing is run, nothing is looked up. Any input gives an answer in bounded
//! time and space, and the answer to what cannot be read for certain is no.
//!
//! The promise: **whatever simple command bash would run from the text is in the IR, or is marked as
//! computed there, or the text is refused.** It is not a sandbox, and cannot see through programs that
//! compute what they run: docs/SHELL.md lists what it cannot see.
//!
//! # Examples
//!
//! ```
//! use ringfence_shell::{Code, Ir, RuleSet, Verdict, decide};
//!
//! let ir = Ir::from_bash("make test && (cd /tmp; sudo -u me rm -rf \"$x\")");
//! assert_eq!(ir.commands.len(), 4); // make, cd, sudo, and the rm inside it
//!
//! let Verdict::Deny { code, .. } = decide(&ir, RuleSet::Default) else { panic!("allowed") };
//! assert_eq!(code, Code::Cd);
//! ```

#![forbid(unsafe_code)]

mod argv;
mod code;
mod decide;
mod device;
pub mod hook;
mod index;
mod interpreters;
mod ir;
mod judge;
mod lower;
mod parse;
mod read;
mod refusal;
mod rules;
mod span;
mod verify;
mod writes;

pub use argv::command_line;
pub use code::Code;
pub use decide::{RuleSet, UnknownRuleSet, Verdict, decide};
pub use ir::{
    Assignment, Block, BlockKind, Command, Dialect, Finding, Hole, HoleKind, IR_VERSION, Ir,
    Redirection, RedirectionKind, Word, Yields,
};
pub use judge::{Judgement, judge};
pub use refusal::{Refusal, RefusalKind};
pub use rules::{Action, Answer, Element, Rule, RuleError, Rules};
pub use span::Span;
pub use writes::{WriteTarget, write_targets};

/// The largest text that is read, in bytes.
pub const MAX_TEXT: usize = 1 << 20;
