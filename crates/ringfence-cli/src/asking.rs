//! What was typed about requests, grants and trust.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use ringfence::grants::threads::ThreadId;
use ringfence_core::host::HostPattern;
use ringfence_core::settings::GitLevel;

/// What a command asks for beyond its policy, and who is asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct RequestFlags {
    #[command(flatten)]
    pub(crate) wanted: WantedFlags,
    /// Why, for whoever is asked. It is shown as the words of whoever wrote it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// The thread that the command belongs to: answers can be kept for it.
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<ThreadId>,
    /// Ask a program over this open descriptor, one JSON object a line.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..), conflicts_with = "approve_cmd")]
    pub(crate) approve_fd: Option<u32>,
    /// Ask a program: a line for sh, with the question on its standard input.
    #[arg(long, value_name = "COMMAND", value_hint = ValueHint::CommandString)]
    pub(crate) approve_cmd: Option<OsString>,
    /// How many seconds to wait for an answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) approve_timeout: u64,
    /// Never ask on the terminal: without a program to ask, the answer is no.
    #[arg(long)]
    pub(crate) no_prompt: bool,
}

impl RequestFlags {
    /// Whether any of this was typed.
    pub(crate) fn is_used(&self) -> bool {
        let wanted = &self.wanted;
        !wanted.request_host.is_empty()
            || !wanted.request_write.is_empty()
            || wanted.request_git.is_some()
            || wanted.request_all_hosts
            || wanted.request_write_all
            || wanted.request_unsandboxed
            || self.thread.is_some()
            || self.approve_fd.is_some()
            || self.approve_cmd.is_some()
    }
}

/// Permissions, one by one.
#[derive(Debug, Args)]
#[expect(clippy::struct_field_names, reason = "each is named as its flag")]
pub(crate) struct WantedFlags {
    /// Ask to reach a host: example.org, *.example.org:8443.
    #[arg(long, value_name = "PATTERN", value_hint = ValueHint::Hostname)]
    pub(crate) request_host: Vec<HostPattern>,
    /// Ask to reach any host.
    #[arg(long)]
    pub(crate) request_all_hosts: bool,
    /// Ask to use git metadata.
    #[arg(long, value_name = "LEVEL", value_parser = crate::args::granted_git())]
    pub(crate) request_git: Option<GitLevel>,
    /// Ask to write a path.
    #[arg(long, value_parser = crate::args::path(), value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) request_write: Vec<PathBuf>,
    /// Ask to write everything that is not hidden or protected.
    #[arg(long)]
    pub(crate) request_write_all: bool,
    /// Ask to run outside the sandbox, only tracked.
    #[arg(long)]
    pub(crate) request_unsandboxed: bool,
}

/// `ringfence grants`.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Grants {
    #[command(subcommand)]
    pub(crate) command: GrantsCommand,
}

/// What to do with grants.
#[derive(Debug, Subcommand)]
pub(crate) enum GrantsCommand {
    /// Print what is granted, by whom and since when
    List {
        /// Answer in JSON.
        #[arg(long)]
        json: bool,
    },
    /// Grant without being asked: for always, or for a thread
    Add(GrantChange),
    /// Take a grant back; it holds no longer from the next command on
    Revoke(GrantChange),
}

/// What is granted or taken back.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that is there or not"
)]
pub(crate) struct GrantChange {
    /// To reach a host.
    #[arg(long, value_name = "PATTERN", group = "what", value_hint = ValueHint::Hostname)]
    pub(crate) host: Vec<HostPattern>,
    /// To reach any host.
    #[arg(long, group = "what")]
    pub(crate) all_hosts: bool,
    /// To use git metadata.
    #[arg(long, value_name = "LEVEL", group = "what", value_parser = crate::args::granted_git())]
    pub(crate) git: Option<GitLevel>,
    /// To write a path.
    #[arg(long, value_parser = crate::args::path(), value_name = "PATH", group = "what", value_hint = ValueHint::AnyPath)]
    pub(crate) write: Vec<PathBuf>,
    /// To write everything that is not hidden or protected.
    #[arg(long, group = "what")]
    pub(crate) write_all: bool,
    /// To run outside the sandbox.
    #[arg(long, group = "what")]
    pub(crate) unsandboxed: bool,
    /// To run without the sandbox where it cannot be made; for a thread only.
    #[arg(long, group = "what", requires = "thread")]
    pub(crate) fallback: bool,
    /// For this thread, instead of always.
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<ThreadId>,
}

/// `ringfence trust`.
#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// The project, instead of the nearest one above the current directory.
    #[arg(value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub(crate) path: Option<PathBuf>,
    /// Trust it no longer.
    #[arg(long, conflicts_with_all = ["list", "yes"])]
    pub(crate) revoke: bool,
    /// Print every project that is trusted.
    #[arg(long, conflicts_with_all = ["path", "yes"])]
    pub(crate) list: bool,
    /// Trust it as it is now; without this, only show what it would widen.
    #[arg(long)]
    pub(crate) yes: bool,
}
