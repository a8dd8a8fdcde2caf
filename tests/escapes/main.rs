//! One file per way out. Each way is first shown to be open without a sandbox; then it is tried
//! inside, where the exact answer counts, and what lies outside is compared before and after. Where
//! one layer is what holds, the same test shows that the way is open again without that layer.
//!
//! docs/ESCAPES.md is the index.
#![cfg(target_os = "linux")]

#[cfg(test)]
mod handles;
#[cfg(test)]
mod links_and_renames;
#[cfg(test)]
mod metadata_write;
#[cfg(test)]
mod proc_aliases;
#[cfg(test)]
mod secret_read;
#[cfg(test)]
mod symlink_write;
