//! Answers in words.
//!
//! Each module turns one type of the libraries into text. Names, paths and values come from
//! files that anybody may have written, so everything here is escaped before it is shown.

pub(crate) mod diagnostics;
pub(crate) mod doctor;
pub(crate) mod ending;
pub(crate) mod grant;
pub(crate) mod ir;
pub(crate) mod judgement;
pub(crate) mod missing;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod verdict;
