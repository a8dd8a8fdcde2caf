//! One file per way out. Each way is first shown to be open without a sandbox; then it is tried
//! inside, where the exact answer counts, and what lies outside is compared before and after. Where
//! one layer is what holds, the same test shows that the way is open again without that layer.
//!
//! docs/ESCAPES.md is the index.
#![cfg(target_os = "linux")]

#[cfg(test)]
mod bind_source_race;
#[cfg(test)]
mod broker_race;
#[cfg(test)]
mod climbing;
#[cfg(test)]
mod descriptors;
#[cfg(test)]
mod devices;
#[cfg(test)]
mod egress;
#[cfg(test)]
mod environment;
#[cfg(test)]
mod every_number;
#[cfg(test)]
mod fail_closed;
#[cfg(test)]
mod fault_injection;
#[cfg(test)]
mod foreign_calls;
#[cfg(test)]
mod gate_direct;
#[cfg(test)]
mod gate_hello;
#[cfg(test)]
mod gate_proxy;
#[cfg(test)]
mod gate_robust;
#[cfg(test)]
mod git_executes;
#[cfg(test)]
mod git_metadata;
#[cfg(test)]
mod git_obeys;
#[cfg(test)]
mod git_planted;
#[cfg(test)]
mod git_unlisted;
#[cfg(test)]
mod granted_socket;
#[cfg(test)]
mod granted_trees;
#[cfg(test)]
mod grants;
#[cfg(test)]
mod handles;
#[cfg(test)]
mod held_open;
#[cfg(test)]
mod home_dotfiles;
#[cfg(test)]
mod host_side_replace;
#[cfg(test)]
mod index;
#[cfg(test)]
mod init_secrets;
#[cfg(test)]
mod kernel_files;
#[cfg(test)]
mod keyring;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod links_and_renames;
#[cfg(test)]
mod machine_calls;
#[cfg(test)]
mod many_repositories;
#[cfg(test)]
mod metadata_write;
#[cfg(test)]
mod moved_references;
#[cfg(test)]
mod namespaces_and_mounts;
#[cfg(test)]
mod nested;
#[cfg(test)]
mod nothing_survives;
#[cfg(test)]
mod other_processes;
#[cfg(test)]
mod own_program;
#[cfg(test)]
mod parted_threads;
#[cfg(test)]
mod path_bombs;
#[cfg(test)]
mod planted_mount_point;
#[cfg(test)]
mod private_tmp;
#[cfg(test)]
mod proc_aliases;
#[cfg(test)]
mod proof;
#[cfg(test)]
mod protected_names;
#[cfg(test)]
mod random_operations;
#[cfg(test)]
mod rebuilt_ancestors;
#[cfg(test)]
mod rings;
#[cfg(test)]
mod runs_later;
#[cfg(test)]
mod secret_read;
#[cfg(test)]
mod set_id;
#[cfg(test)]
mod settings_files;
#[cfg(test)]
mod shared_pools;
#[cfg(test)]
mod signals;
#[cfg(test)]
mod socket_families;
#[cfg(test)]
mod spellings;
#[cfg(test)]
mod staged_paths;
#[cfg(test)]
mod strange_parent;
#[cfg(test)]
mod submounts;
#[cfg(test)]
mod symlink_write;
#[cfg(test)]
mod system_ipc;
#[cfg(test)]
mod terminal_injection;
#[cfg(test)]
mod tracking;
#[cfg(test)]
mod unheard_names;
#[cfg(test)]
mod unix_sockets;
#[cfg(test)]
mod watching;
#[cfg(test)]
mod working_directory;
