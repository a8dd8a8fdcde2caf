//! File systems of this machine's own: they list everything they have, and keep the time of changes.

const TMPFS: u32 = 0x0102_1994;

/// Whether its files are nowhere but in memory.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a file system's number has 32 bits, whatever the type of the field is"
)]
pub(crate) fn is_in_memory(facts: &rustix::fs::StatFs) -> bool {
    facts.f_type as u32 == TMPFS
}

/// Whether a file system is one that is known to.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a file system's number has 32 bits, whatever the type of the field is"
)]
pub(crate) fn is_local(facts: &rustix::fs::StatFs) -> bool {
    // ext, xfs, btrfs, tmpfs, overlay, f2fs, zfs, bcachefs.
    const LOCAL: [u32; 8] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        TMPFS,
        0x794c_7630,
        0xf2f5_2010,
        0x2fc1_2fc1,
        0xca45_1a4e,
    ];
    LOCAL.contains(&(facts.f_type as u32))
}
