//! The binary, driven as a user drives it.
//!
//! Each test has a home and a project of its own, and calls the real program with an empty
//! environment. Golden files hold what it prints, with the paths of this machine taken out.

#[cfg(test)]
mod answering;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod crowd;
#[cfg(test)]
mod diagnostics;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod dotfiles;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod flags;
#[cfg(test)]
mod grants;
#[cfg(test)]
mod help;
#[cfg(test)]
mod hostile;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod lent;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod limits;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod linger;
#[cfg(test)]
mod link;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod missing;
#[cfg(test)]
mod mistyped;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod nested;
#[cfg(test)]
mod network;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod not_given;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod orphans;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod own;
#[cfg(test)]
mod place;
#[cfg(test)]
mod plan;
#[cfg(test)]
mod report;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod repositories;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod shell;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod signals;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod stage;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod track;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod trail;
#[cfg(test)]
mod world;
