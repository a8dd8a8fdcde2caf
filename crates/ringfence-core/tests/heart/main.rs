//! The pure heart, from outside: what settings become, on hosts that are data.
//!
//! One binary, so that the crates these tests need are linked once.

#[cfg(test)]
mod carried;
#[cfg(test)]
mod elsewhere;
#[cfg(test)]
mod given;
#[cfg(test)]
mod granting;
#[cfg(test)]
mod links;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod narrowing;
#[cfg(test)]
mod own;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod random;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod resolving;
#[cfg(test)]
mod sbpl;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod seatbelt;
#[cfg(test)]
mod world;
