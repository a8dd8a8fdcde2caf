//! Finds the rows of a table by name, without walking the table for every command.

use std::collections::HashMap;

/// The positions of the rows that have each name.
pub(crate) type Index = HashMap<&'static str, Vec<usize>>;

/// Builds the index of a table whose rows have `names`.
pub(crate) fn of(rows: impl Iterator<Item = &'static [&'static str]>) -> Index {
    let mut index = Index::new();
    for (position, names) in rows.enumerate() {
        for name in names {
            index.entry(name).or_default().push(position);
        }
    }
    index
}

/// The rows of `table` called `name`, in order.
pub(crate) fn rows<'t, T>(
    index: &'t Index,
    table: &'static [T],
    name: &str,
) -> impl Iterator<Item = &'static T> + 't {
    let positions = index.get(name).map(Vec::as_slice).unwrap_or_default();
    positions.iter().filter_map(|position| table.get(*position))
}
