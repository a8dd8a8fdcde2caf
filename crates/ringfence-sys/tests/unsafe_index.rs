//! docs/UNSAFE.md lists every unsafe block: this test counts.

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    /// How often each source file says `unsafe` in code.
    fn sources() -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (directory, prefix) in [
            ("init", "init/"),
            ("src/linux", ""),
            ("src/macos", "macos/"),
        ] {
            let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
            count(&directory, prefix, &mut counts);
        }
        counts
    }

    fn count(directory: &Path, prefix: &str, counts: &mut BTreeMap<String, usize>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let count: usize = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .map(|line| line.matches("unsafe ").count() + line.matches("unsafe(").count())
                .sum();
            if count > 0 {
                let name = path.file_name().unwrap().to_str().unwrap();
                counts.insert(format!("{prefix}{name}"), count);
            }
        }
    }

    /// What the index says: rows that begin with a file's name and a number.
    fn index() -> BTreeMap<String, usize> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/UNSAFE.md");
        let text = fs::read_to_string(path).unwrap();
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
        rows.map(|row| {
            let (name, rest) = row.split_once("` | ").unwrap();
            let (count, _) = rest.split_once(' ').unwrap();
            (name.to_owned(), count.parse().unwrap())
        })
        .collect()
    }

    #[test]
    fn index_is_complete() {
        assert_eq!(sources(), index());
    }
}
