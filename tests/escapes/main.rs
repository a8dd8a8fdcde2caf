//! One file per way out. Each way is first shown to be open without a sandbox; then it is tried
//! inside, where the exact answer counts, and what lies outside is compared before and after. Where
//! one layer is what holds, the same test shows that the way is open again without that layer.
//!
//! docs/ESCAPES.md is the index.
#![cfg(target_os = "linux")]

#[cfg(test)]
mod bind_source_race;
#[cfg(test)]
mod devices;
#[cfg(test)]
mod fail_closed;
#[cfg(test)]
mod fault_injection;
#[cfg(test)]
mod grants;
#[cfg(test)]
mod handles;
#[cfg(test)]
mod links_and_renames;
#[cfg(test)]
mod metadata_write;
#[cfg(test)]
mod planted_mount_point;
#[cfg(test)]
mod private_tmp;
#[cfg(test)]
mod proc_aliases;
#[cfg(test)]
mod proof;
#[cfg(test)]
mod secret_read;
#[cfg(test)]
mod set_id;
#[cfg(test)]
mod settings_files;
#[cfg(test)]
mod symlink_write;
#[cfg(test)]
mod working_directory;
