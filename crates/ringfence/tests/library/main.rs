//! The library, as a program uses it that has better things to do: many threads, children of its
//! own, and handles that are dropped. As whoever runs the tests and, when that is root, as a plain
//! user as well.
#![cfg(target_os = "linux")]

#[cfg(test)]
mod ahead;
#[cfg(test)]
mod caller;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod events;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod sessions;
#[cfg(test)]
#[path = "../launch/world.rs"]
mod world;
