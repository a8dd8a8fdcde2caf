//! Capabilities: reading them, and giving all of them up.
//!
//! Nothing here ever raises one.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities,
    capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
};

use super::subject::Subject;

/// The three sets that `capget` tells of, as bits numbered like the kernel's constants.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sets {
    /// What counts now.
    pub effective: u64,
    /// What may be made to count.
    pub permitted: u64,
    /// What exec may pass on.
    pub inheritable: u64,
}

/// No kernel can have more: the sets are 64 bits wide.
const POSSIBLE: u32 = 64;

/// Reads the sets of the calling thread.
///
/// # Errors
///
/// The kernel's answer.
pub fn read() -> Result<Sets, Errno> {
    let sets = capabilities(None)?;
    Ok(Sets {
        effective: sets.effective.bits(),
        permitted: sets.permitted.bits(),
        inheritable: sets.inheritable.bits(),
    })
}

/// Reads the bounding set: what exec could still give.
///
/// # Errors
///
/// The kernel's answer.
pub fn read_bounding() -> Result<u64, Errno> {
    let mut bounding = 0;
    for number in 0..POSSIBLE {
        match capability_is_in_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(true) => bounding |= 1 << number,
            Ok(false) => {}
            // The first number that this kernel does not know.
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(bounding)
}

/// Empties every set: bounding and ambient, then effective, permitted and inheritable, in
/// this order because emptying the first takes a right that the last gives up.
///
/// # Errors
///
/// [`Errno::PERM`] if the bounding set could not be emptied: that takes `CAP_SETPCAP`. The
/// other sets are then untouched; see [`clear`] for a process that has no rights to begin with.
pub fn drop_all(subject: &Subject) -> Result<(), Errno> {
    drop_bounding(subject)?;
    clear(subject)
}

/// Empties the bounding set.
///
/// # Errors
///
/// [`Errno::PERM`] without `CAP_SETPCAP`.
pub fn drop_bounding(_subject: &Subject) -> Result<(), Errno> {
    for number in 0..POSSIBLE {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            Err(Errno::INVAL) if number > 0 => return Ok(()),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Empties the ambient, effective, permitted and inheritable sets; anybody may.
///
/// # Errors
///
/// The kernel's answer.
pub fn clear(_subject: &Subject) -> Result<(), Errno> {
    clear_ambient_capability_set()?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        },
    )
}

/// Takes the meaning from uid 0, for good: no exec, no change of uid and no ambient set gives
/// a capability any more. Needs `CAP_SETPCAP`, so call it before [`drop_all`].
///
/// # Errors
///
/// [`Errno::PERM`] without the right.
pub fn lock_secure_bits(_subject: &Subject) -> Result<(), Errno> {
    set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )
}
