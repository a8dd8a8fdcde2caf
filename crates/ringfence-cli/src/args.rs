// Long: every flag of every command, with its help.
//! What was typed.
//!
//! Only the shape of the command line: what it means is worked out in [`crate::flags`]. Paths are
//! kept as the operating system gave them, UTF-8 or not.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueHint};
use ringfence_core::host::HostPattern;
use ringfence_core::plan::EngineChoice;
use ringfence_core::policy::EnvPattern;
use ringfence_core::settings::{GitLevel, Kind, NetworkMode, OnGap, Preset, SocketName, Tmp, Word};
use ringfence_core::text::printable_path;
use ringfence_shell::RuleSet;
use ringfence_shell::hook::Agent;

use crate::flags::{Level, LimitFlag, Variable};
use crate::hinted::hinted;

/// Run a command so that it can only touch what it was given, and nothing it started survives.
#[derive(Debug, Parser)]
#[command(
    name = "ringfence",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Examples:
  ringfence run -- npm test                confine one command to this project
  ringfence shell                          work in a confined shell
  ringfence explain ~/.ssh/id_ed25519      what a command could do with it, and who says so
  ringfence explain --plan                 what would be done to confine a command here
  ringfence doctor                         what this host can enforce, and what to fix
  ringfence settings check                 every mistake in the settings, with its line

Exit status: the command's own; 125 ringfence refused or failed and nothing ran,
126 found but not runnable, 127 not found, 124 time limit, 128+n killed by signal n,
2 wrong usage or settings."
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Confine one command
    #[command(after_help = "Examples:
  ringfence run -- cargo test
  ringfence run --write ~/.cargo/registry --allow-host '*.crates.io' -- cargo build
  ringfence run --preset strict --net none -- ./untrusted.sh
  ringfence run --shell-policy verify -- bash -c 'make test | tail'
  ringfence run --tty -- vim notes.md
  ringfence run --dry-run -v -- make         print the plan and start nothing")]
    #[command(override_usage = "ringfence run [FLAGS] [--] COMMAND [ARGUMENT]...")]
    Run(Box<RunArguments>),
    /// Open your login shell, confined, in a terminal of its own
    #[command(after_help = "Examples:
  ringfence shell
  ringfence shell --net none --hide ~/notes

The shell is $SHELL, or the one of your account, started as a login shell. Without a terminal it
reads commands from standard input.")]
    Shell(Box<ShellArguments>),
    /// Say what a command could do, and which line of which file decides
    #[command(after_help = "Examples:
  ringfence explain ~/.ssh/id_ed25519 src/main.rs
  ringfence explain --host api.example.org:443
  ringfence explain --env SSH_AUTH_SOCK
  ringfence explain --plan --host-facts ubuntu-24.04")]
    Explain(Box<Explain>),
    /// Say what this host can enforce, by trying, and what to type where it cannot
    #[command(after_help = "Examples:
  ringfence doctor
  ringfence doctor --json | jq .facts > here.json
  ringfence explain --plan --host-facts here.json

Exit status: 0 if the default preset can be enforced here, 1 if not.")]
    Doctor {
        /// Answer in JSON.
        #[arg(long, help_heading = "Output")]
        json: bool,
    },
    /// Read a bash command before it runs, and say what a rule set thinks of it
    #[command(after_help = "Examples:
  ringfence check -c 'make test && rm -rf build' --rules verify
  ringfence check script.sh
  echo 'cd /tmp' | ringfence check -

Exit status: 0 if it is allowed, 1 if not. It is advice in front of the sandbox, never a way
through it.")]
    Check(Check),
    /// Answer an agent's question before it runs a command, in that agent's own format
    #[command(after_help = "Examples:
  ringfence hook install claude-code --print   what would change in its settings
  ringfence hook install claude-code           let it ask before every shell command
  ringfence hook claude-code --rules verify    what it calls: question on standard input

A question that is not understood ends with status 2, which agents take for a no.")]
    Hook(Hook),
    /// Show, give and take back what commands may do beyond their policy
    #[command(after_help = "Examples:
  ringfence grants list
  ringfence grants add --host '*.npmjs.org'          for always, in your settings
  ringfence grants add --thread t1 --write ~/.cache  for one thread
  ringfence grants revoke --host '*.npmjs.org'")]
    Grants(crate::asking::Grants),
    /// Let a project's own settings widen, as long as they stay as they are
    #[command(after_help = "Examples:
  ringfence trust            what the project's settings would widen
  ringfence trust --yes      trust exactly this content
  ringfence trust --revoke")]
    Trust(crate::asking::Trust),
    /// Show, check and describe settings
    #[command(after_help = "Examples:
  ringfence settings check                         every mistake, with its line
  ringfence settings show                          what holds here, and who says so
  ringfence settings schema > ringfence.schema.json")]
    Settings(Settings),
    /// Show the sessions that run, end one, and remove what killed ones left
    #[command(after_help = "Examples:
  ringfence run --linger --name web -- npm run dev
  ringfence sessions list
  ringfence sessions kill web

Exit status: 0 if it was done, 1 if not.")]
    Sessions(Sessions),
    /// Show what happened in sessions: starts, ends, refusals and denials
    #[command(after_help = "Examples:
  ringfence log
  ringfence log --follow --session web
  ringfence log --denials --last 10
  ringfence log --json | jq 'select(.event == \"end\")'")]
    Log(Log),
    /// Print a completion script for a shell
    #[command(after_help = "Example:
  ringfence completions bash > ~/.local/share/bash-completion/completions/ringfence")]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one for every command
    #[command(after_help = "Examples:
  ringfence man | man -l -
  ringfence man --dir ~/.local/share/man/man1")]
    Man {
        /// Write a page for each command into this directory.
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
}

/// `ringfence sessions`.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Sessions {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
}

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// Print the sessions that run: name, age, processes, memory, project and command
    List {
        /// Answer in JSON.
        #[arg(long)]
        json: bool,
    },
    /// End sessions now, with everything in them
    Kill {
        /// By name, or by id.
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
    /// Remove what is left of sessions whose supervisor was killed; every start does the same
    Clean,
}

/// `ringfence log`.
#[derive(Debug, Args)]
pub(crate) struct Log {
    /// Go on and print what happens from now on.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only of one session, by name or by id.
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Only what was denied in sessions, and what was not started.
    #[arg(long)]
    pub(crate) denials: bool,
    /// Only the last N of what there is.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Print the lines as they are written: JSON.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// `ringfence check`.
#[derive(Args, Debug)]
pub(crate) struct Check {
    /// A file, or `-` for standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "text")]
    pub(crate) file: Option<PathBuf>,
    /// The text itself.
    #[arg(short = 'c', value_name = "TEXT", conflicts_with = "file")]
    pub(crate) text: Option<String>,
    /// Which rules to judge by: default, relaxed or verify.
    #[arg(long, value_name = "RULES", default_value = "default", hide_possible_values = true, value_parser = rules())]
    pub(crate) rules: RuleSet,
    /// Print everything that could run, with its place.
    #[arg(long, help_heading = "Output")]
    pub(crate) explain: bool,
    /// Answer in JSON.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// `ringfence run` by itself, with the first word as its name.
#[derive(Debug, Parser)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) arguments: RunArguments,
}

/// `ringfence hook`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Hook {
    /// Whose format: claude-code, codex, gemini or generic.
    #[arg(value_name = "AGENT", required = true, hide_possible_values = true, value_parser = agent())]
    pub(crate) agent: Option<Agent>,
    /// Which rules to judge by: default, relaxed or verify.
    #[arg(long, value_name = "RULES", default_value = "default", hide_possible_values = true, value_parser = rules())]
    pub(crate) rules: RuleSet,
    /// What to do instead.
    #[command(subcommand)]
    pub(crate) command: Option<HookCommand>,
}

/// What to do with an agent's settings.
#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// Write the hook into an agent's settings
    Install(HookInstall),
    /// Take the hook out of an agent's settings
    Uninstall(HookChange),
}

/// `ringfence hook install`.
#[derive(Args, Debug)]
pub(crate) struct HookInstall {
    #[command(flatten)]
    pub(crate) change: HookChange,
    /// Which rules to judge by: default, relaxed or verify.
    #[arg(long, value_name = "RULES", default_value = "default", hide_possible_values = true, value_parser = rules())]
    pub(crate) rules: RuleSet,
}

/// `ringfence hook uninstall`.
#[derive(Args, Debug)]
pub(crate) struct HookChange {
    /// Whose settings: claude-code, codex or gemini.
    #[arg(value_name = "AGENT", hide_possible_values = true, value_parser = agent())]
    pub(crate) agent: Agent,
    /// The settings file, instead of the user's own.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Show the change and make none.
    #[arg(long)]
    pub(crate) print: bool,
}

/// `ringfence run`.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,

    /// Give it a terminal of its own, for programs that draw on the screen.
    #[arg(short, long, help_heading = "Terminal")]
    pub(crate) tty: bool,
    /// Let background processes live on when the command has ended, until the session is ended by name.
    #[arg(long, conflicts_with_all = ["dry_run", "tty"], help_heading = "Session")]
    pub(crate) linger: bool,
    /// Where the supervisor of a lingering session says how its command ended.
    #[arg(long, value_name = "N", hide = true, requires = "linger")]
    pub(crate) lingering: Option<u32>,

    /// The command and its arguments.
    #[arg(
        value_name = "COMMAND",
        help_heading = "Arguments",
        required = true,
        trailing_var_arg = true,
        value_hint = ValueHint::CommandWithArguments
    )]
    pub(crate) command: Vec<OsString>,
}

/// `ringfence shell`.
#[derive(Debug, Args)]
pub(crate) struct ShellArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
}

/// What every session can be told.
#[derive(Debug, Args)]
pub(crate) struct SessionArguments {
    #[command(flatten)]
    pub(crate) place: PlaceFlags,
    #[command(flatten)]
    pub(crate) files: FileFlags,
    #[command(flatten)]
    pub(crate) network: NetworkFlags,
    #[command(flatten)]
    pub(crate) environment: EnvironmentFlags,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    #[command(flatten)]
    pub(crate) engine: EngineFlags,
    #[command(flatten)]
    pub(crate) request: crate::asking::RequestFlags,

    /// What the session is called in `ringfence sessions`; made from the command if not given.
    #[arg(long, value_name = "NAME", value_parser = session_name, help_heading = "Session")]
    pub(crate) name: Option<String>,
    /// Read the command first, and start it only if these rules allow it: default, relaxed or verify.
    #[arg(long, value_name = "RULES", help_heading = "Policy", hide_possible_values = true, value_parser = rules())]
    pub(crate) shell_policy: Option<RuleSet>,

    /// Pass on text and colours only: no titles, clipboards, links, questions or cursor movements.
    #[arg(long, help_heading = "Output")]
    pub(crate) sanitize: bool,
    /// Print the plan for the command and start nothing.
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,
    /// With --dry-run: plan for another host, from a JSON file or by name.
    #[arg(
        long,
        value_name = "FILE|NAME",
        requires = "dry_run",
        help_heading = "Output"
    )]
    pub(crate) host_facts: Option<OsString>,
    /// With --dry-run: print the plan as JSON.
    #[arg(long, requires = "dry_run", help_heading = "Output")]
    pub(crate) json: bool,
    /// Write the report to a file when the command has ended.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
    /// Write events and the report to this open descriptor, one JSON object a line.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(3..), help_heading = "Output")]
    pub(crate) json_fd: Option<i32>,
    /// Say what is done; twice for more.
    #[arg(short, long, action = ArgAction::Count, help_heading = "Output")]
    pub(crate) verbose: u8,
}

/// `ringfence explain`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("question").required(true).multiple(true))]
pub(crate) struct Explain {
    /// Paths to explain; links are followed first.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath, group = "question")]
    pub(crate) paths: Vec<PathBuf>,
    /// A host, with a port if it is not 443.
    #[arg(
        long,
        value_name = "HOST[:PORT]",
        group = "question",
        help_heading = "Questions"
    )]
    pub(crate) host: Vec<String>,
    /// An environment variable.
    #[arg(
        long,
        value_name = "NAME",
        group = "question",
        help_heading = "Questions",
        value_parser = variable
    )]
    pub(crate) env: Vec<String>,
    /// The acts that would confine a command, in order, and what they could not hold.
    #[arg(long, group = "question", help_heading = "Questions")]
    pub(crate) plan: bool,
    /// With --plan: the plan for another host, from a JSON file or by name.
    #[arg(
        long,
        value_name = "FILE|NAME",
        requires = "plan",
        help_heading = "Questions"
    )]
    pub(crate) host_facts: Option<OsString>,
    /// Whose command it would be.
    #[arg(long, value_parser = word::<Kind>(), default_value = "tool", help_heading = "Questions")]
    pub(crate) kind: Kind,

    #[command(flatten)]
    pub(crate) place: PlaceFlags,
    #[command(flatten)]
    pub(crate) files: FileFlags,
    #[command(flatten)]
    pub(crate) network: NetworkFlags,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    #[command(flatten)]
    pub(crate) engine: EngineFlags,

    /// Answer in JSON.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// With --plan: list mounts and Landlock rules too; twice for names that must not appear.
    #[arg(short, long, action = ArgAction::Count, help_heading = "Output")]
    pub(crate) verbose: u8,
}

/// `ringfence settings`.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Settings {
    #[command(subcommand)]
    pub(crate) command: SettingsCommand,
}

/// What to do with settings.
#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Print what holds, and where each value was written
    Show(Box<Show>),
    /// Print every mistake in the settings
    Check(Box<Show>),
    /// Print a JSON Schema for editors
    Schema,
    /// Print where settings are read from
    Path {
        #[command(flatten)]
        place: PlaceFlags,
        /// Answer in JSON.
        #[arg(long)]
        json: bool,
    },
}

/// `ringfence settings show` and `check`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Whose command the settings would be for.
    #[arg(long, value_parser = word::<Kind>(), default_value = "tool")]
    pub(crate) kind: Kind,
    #[command(flatten)]
    pub(crate) place: PlaceFlags,
    #[command(flatten)]
    pub(crate) files: FileFlags,
    #[command(flatten)]
    pub(crate) network: NetworkFlags,
    #[command(flatten)]
    pub(crate) environment: EnvironmentFlags,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    /// Answer in JSON.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// List what does not exist here, too.
    #[arg(short, long, action = ArgAction::Count, help_heading = "Output")]
    pub(crate) verbose: u8,
}

/// Where the policy starts from.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PlaceFlags {
    /// Where the policy starts from.
    #[arg(long, value_parser = word::<Preset>())]
    pub(crate) preset: Option<Preset>,
    /// The project's root, instead of the nearest one above the current directory.
    #[arg(long, value_parser = path(), value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) project: Option<PathBuf>,
}

/// Which files.
#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
pub(crate) struct FileFlags {
    /// Let it be read.
    #[arg(long, value_parser = path(), value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) read: Vec<PathBuf>,
    /// Let it be read, and programs in it be run.
    #[arg(long, value_parser = path(), value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) exec: Vec<PathBuf>,
    /// Let it be read, run and written.
    #[arg(long, value_parser = path(), value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) write: Vec<PathBuf>,
    /// Let it be neither read nor written.
    #[arg(long, value_parser = path(), value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) hide: Vec<PathBuf>,
    /// How much of the project's git metadata may be used.
    #[arg(long, value_name = "LEVEL", value_parser = word::<GitLevel>())]
    pub(crate) git: Option<GitLevel>,
    /// Let a protected name in the project be written, such as .vscode.
    #[arg(long, value_name = "NAME", value_hint = ValueHint::AnyPath)]
    pub(crate) allow_protected: Vec<PathBuf>,
    /// Which temporary directories it sees.
    #[arg(long, value_parser = word::<Tmp>())]
    pub(crate) tmp: Option<Tmp>,
}

/// What may be reached.
#[derive(Debug, Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct NetworkFlags {
    /// Nothing outside the session, or everything.
    #[arg(long, value_parser = net(), conflicts_with = "allow_host")]
    pub(crate) net: Option<NetworkMode>,
    /// Let this host be reached, and no other that is not listed: example.org, *.example.org:8443.
    #[arg(long, value_name = "PATTERN", value_hint = ValueHint::Hostname)]
    pub(crate) allow_host: Vec<HostPattern>,
    /// Let a server inside be reached from the host on this port.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) loopback_in: Vec<u16>,
    /// Let a service on the host's loopback be reached on this port.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) loopback_out: Vec<u16>,
    /// Let a unix socket of the host be connected to, by path or by name: ssh-agent, gpg-agent,
    /// docker, podman, x11, wayland, session-bus.
    #[arg(long, value_name = "SOCKET", hide_possible_values = true, value_parser = socket())]
    pub(crate) unix_socket: Vec<SocketName>,
}

/// What the command finds in its environment.
#[derive(Debug, Args)]
#[command(next_help_heading = "Environment")]
pub(crate) struct EnvironmentFlags {
    /// Let a variable pass: NAME or PREFIX_*.
    #[arg(long, value_name = "NAME", value_parser = passing)]
    pub(crate) env: Vec<EnvPattern>,
    /// Set a variable.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set_env: Vec<Variable>,
}

/// Bounds.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitFlags {
    /// Bound wall, cpu, processes, memory, files, file-size or tmp-size: wall=10m, memory=2GiB.
    #[arg(
        long,
        value_name = "NAME=VALUE",
        hide_possible_values = true,
        value_parser = hinted(str::parse::<LimitFlag>, LimitFlag::names)
    )]
    pub(crate) limit: Vec<LimitFlag>,
}

/// What holds the walls up.
#[derive(Debug, Args)]
#[command(next_help_heading = "Enforcement")]
pub(crate) struct EngineFlags {
    /// What enforces the policy.
    #[arg(long, value_parser = engine(), default_value = "auto")]
    pub(crate) engine: EngineChoice,
    /// Refuse to start with anything weaker.
    #[arg(long, value_name = "LEVEL", value_parser = level())]
    pub(crate) require: Option<Level>,
    /// What to do when this host cannot enforce a rule.
    #[arg(long, value_parser = word::<OnGap>())]
    pub(crate) on_gap: Option<OnGap>,
}

/// A parser for one of a closed set of words, so that help and completions list them.
pub(crate) fn word<W: Word + Send + Sync>() -> impl TypedValueParser<Value = W> {
    PossibleValuesParser::new(W::WORDS.iter().map(|(word, _)| *word))
        .try_map(|word| W::from_word(&word).ok_or("not one of the words above"))
}

/// `hidden` is not offered: it is nothing that anybody could be given.
pub(crate) fn granted_git() -> impl TypedValueParser<Value = GitLevel> {
    PossibleValuesParser::new(["read", "write", "full"])
        .try_map(|word| GitLevel::from_word(&word).ok_or("not a git level"))
}

/// `hosts` is not offered: naming a host says it.
fn net() -> impl TypedValueParser<Value = NetworkMode> {
    PossibleValuesParser::new(["none", "all"])
        .try_map(|word| NetworkMode::from_word(&word).ok_or("not a network mode"))
}

fn engine() -> impl TypedValueParser<Value = EngineChoice> {
    PossibleValuesParser::new(["auto", "namespaces", "landlock", "bwrap"])
        .try_map(|word| word.parse::<EngineChoice>())
}

fn level() -> impl TypedValueParser<Value = Level> {
    PossibleValuesParser::new(["landlock", "namespaces"]).map(|word| match word.as_str() {
        "landlock" => Level::Landlock,
        _ => Level::Namespaces,
    })
}

fn session_name(name: &str) -> Result<String, &'static str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 64 || name.starts_with(['.', '-']) {
        return Err("a name has 1 to 64 characters and begins with a letter or a number");
    }
    if !name.bytes().all(plain) {
        return Err("a name is made of letters, numbers, `-`, `_` and `.`");
    }
    Ok(name.to_owned())
}

fn variable(name: &str) -> Result<String, &'static str> {
    if name.is_empty() || name.contains('=') {
        return Err("a variable's name cannot be empty or hold `=`");
    }
    Ok(name.to_owned())
}

fn passing(name: &str) -> Result<EnvPattern, String> {
    if name.contains('=') {
        return Err(format!(
            "it lets a variable pass as it is; `--set-env {name}` sets one"
        ));
    }
    name.parse()
        .map_err(|error: <EnvPattern as std::str::FromStr>::Err| error.to_string())
}

/// The agents whose questions are understood.
fn agent() -> impl TypedValueParser<Value = Agent> {
    let names = || Agent::ALL.iter().map(|agent| agent.name()).collect();
    hinted(str::parse::<Agent>, names)
}

/// The rules that there are without any of the user's.
fn rules() -> impl TypedValueParser<Value = RuleSet> {
    let names = || RuleSet::ALL.iter().map(|rules| rules.name()).collect();
    hinted(str::parse::<RuleSet>, names)
}

/// A path of a flag. `~me/x` is another one's home where a shell reads it, and would be a directory of that
/// name where none does: nobody knows which is meant.
pub(crate) fn path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(path_of_flag)
}

fn path_of_flag(path: PathBuf) -> Result<PathBuf, String> {
    let first = path.iter().next().unwrap_or_default();
    if first == "~" || !first.as_encoded_bytes().starts_with(b"~") {
        return Ok(path);
    }
    let shown = printable_path(&path);
    Err(format!(
        "only `~/` is a home here: write the whole path, or `./{shown}` for what has that name"
    ))
}

fn socket() -> impl TypedValueParser<Value = SocketName> {
    let path = PathBufValueParser::new().try_map(socket_name);
    hinted(path, || SocketName::KNOWN.to_vec())
}

fn socket_name(path: PathBuf) -> Result<SocketName, String> {
    if let Some(known) = path.to_str().and_then(SocketName::known) {
        return Ok(known);
    }
    if path.as_os_str().as_encoded_bytes().contains(&b'/') {
        return path_of_flag(path).map(SocketName::Path);
    }
    Err(format!(
        "write a path, or one of: {}",
        SocketName::KNOWN.join(", ")
    ))
}
