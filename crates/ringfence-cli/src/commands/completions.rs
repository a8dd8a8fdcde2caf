//! `ringfence completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::Exit;
use crate::output::{answer_exactly, complain};

/// What is completed behind `--` of `run` is a command of somebody else's. The generated script for bash
/// knows nothing of that; with bash-completion the command's own completions are used.
const BASH: &str = r#"
_ringfence_or_command() {
    local at
    for ((at = 2; at < COMP_CWORD; at++)); do
        if [[ ${COMP_WORDS[1]} == run && ${COMP_WORDS[at]} == -- ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset $((at + 1))
            elif ((COMP_CWORD == at + 1)); then
                COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
            fi
            return
        fi
    done
    _ringfence "$@"
}
complete -F _ringfence_or_command -o bashdefault -o default ringfence
"#;

pub(super) fn run(shell: Shell) -> Result<Exit, Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ringfence", &mut script);
    if shell == Shell::Bash {
        script.extend_from_slice(BASH.as_bytes());
    }
    let text = String::from_utf8(script).map_err(|error| {
        complain(&format!("the script is not text: {error}"), None);
        Exit::Refused
    })?;
    Ok(answer_exactly(&text))
}
