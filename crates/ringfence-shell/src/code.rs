//! The risk codes: one stable name per construct, never raw syntax.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// What a piece of the text may do, or why a verdict fell.
        ///
        /// Codes are added, never renamed: consumers store them.
        #[derive(
            Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
        )]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl Code {
            /// Every code, in order of name.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stable name, as serialised.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

codes! {
    /// `alias` gives a name new text, which changes how later lines are read.
    Alias = "alias",
    /// A value is evaluated, as arithmetic, a subscript or an array; one like `a[$(cmd)]` then runs `cmd`.
    Arithmetic = "arithmetic",
    /// A variable is set for the shell itself.
    Assignment = "assignment",
    /// A variable is set for one command.
    AssignmentPrefix = "assignment-prefix",
    /// A command is left running in the background.
    Background = "background",
    /// Braces expand into several words.
    BraceExpansion = "brace-expansion",
    /// The working directory changes.
    Cd = "cd",
    /// `$( )` or back-ticks.
    CommandSubstitution = "command-substitution",
    /// Code whose text is only known when it runs, as in `eval "$x"`.
    ComputedCode = "computed-code",
    /// A command whose name is only known when it runs.
    ComputedCommand = "computed-command",
    /// `coproc`.
    Coprocess = "coprocess",
    /// A variable that decides which code trusted programs run: `PATH`, `LD_PRELOAD`, `BASH_ENV`.
    EnvironmentHijack = "environment-hijack",
    /// Text is run as shell code: `eval`, `trap`, `bash -c`.
    Eval = "eval",
    /// A parameter, arithmetic or tilde expansion.
    Expansion = "expansion",
    /// A function is defined.
    FunctionDefinition = "function-definition",
    /// A file name pattern.
    Glob = "glob",
    /// A here-document or here-string.
    Heredoc = "heredoc",
    /// Code in another language on the command line: `python3 -c`, `awk '...'`.
    InlineInterpreter = "inline-interpreter",
    /// Characters that look like others, are invisible, or change the direction of text.
    Lookalike = "lookalike",
    /// A command that changes files, the repository or the modules of a project.
    MutatingCommand = "mutating-command",
    /// Code reaches an interpreter where nothing can read it first: a pipe, a here-document, a substitution.
    OpaqueInterpreter = "opaque-interpreter",
    /// Commands joined by `;`, `&&`, `||` or a new line.
    Operator = "operator",
    /// Commands joined by `|`.
    Pipeline = "pipeline",
    /// `<( )` or `>( )`.
    ProcessSubstitution = "process-substitution",
    /// Input comes from a file.
    RedirectIn = "redirect-in",
    /// Output goes to a real file.
    RedirectOut = "redirect-out",
    /// `set`, `shopt`, `enable`: the shell itself changes.
    ShellOption = "shell-option",
    /// A file is read into the shell as code.
    Source = "source",
    /// `( )`.
    Subshell = "subshell",
    /// The text does not parse, or could be read in two ways.
    SyntaxError = "syntax-error",
    /// A user's rule decided.
    UserRule = "user-rule",
    /// The IR was made by another version.
    VersionMismatch = "version-mismatch",
    /// A command names a file that it would create, change or delete.
    WriteTarget = "write-target",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn names_are_sorted_kebab_case_and_survive_serde() {
        let names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
        assert!(names.is_sorted());
        for code in Code::ALL {
            assert!(
                code.name()
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'-')
            );
            let json = serde_json::to_string(code).unwrap();
            assert_eq!(json, format!("\"{}\"", code.name()));
            assert_eq!(serde_json::from_str::<Code>(&json).unwrap(), *code);
        }
    }
}
