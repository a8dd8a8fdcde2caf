//! House rules that no compiler checks: arrows between crates, the fence around unsafe code, the
//! length of files, and documents whose tables are made from the code.
//!
//! `UPDATE_DOCS=1 cargo test -p ringfence-core --test house` writes the tables anew.

#[cfg(test)]
mod documents;
#[cfg(test)]
mod rules;

#[cfg(test)]
fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
