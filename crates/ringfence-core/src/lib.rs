//! The pure heart of ringfence.
//!
//! Everything here is data and functions over data: no file is opened, no clock is read, no
//! system call is made, and nothing asks which operating system it was compiled for. So any
//! plan, for any host, can be built, printed and tested on any machine.
//!

#![forbid(unsafe_code)]
