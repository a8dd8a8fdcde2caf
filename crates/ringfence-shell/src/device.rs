//! The files that it is harmless to write to.

/// Whether writing to `path` changes nothing that stays: the null device, the standard streams, the
/// terminal, a descriptor that is already open.
///
/// A path with `..` in it is never harmless: what it names depends on symbolic links.
pub(crate) fn is_harmless(path: &str) -> bool {
    if !path.starts_with('/') {
        return false;
    }
    let mut parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    let (Some(root), Some(name), third, fourth) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    if path.ends_with('/') || root != "dev" || fourth.is_some() {
        return false;
    }
    match (name, third) {
        ("null" | "stderr" | "stdout" | "tty", None) => true,
        ("fd", Some(digits)) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        _ => false,
    }
}

/// Whether `path` is another name of standard input.
pub(crate) fn is_standard_input(path: &str) -> bool {
    matches!(path, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn only_devices_without_climbing_are_harmless() {
        for path in [
            "/dev/null",
            "//dev//null",
            "/dev/./null",
            "/dev/fd/2",
            "/dev/stderr",
            "/dev/tty",
            "/dev/stdout",
        ] {
            assert!(is_harmless(path), "{path}");
        }
        for path in [
            "",
            "/",
            "dev/null",
            "/dev",
            "/dev/",
            "/dev/null/",
            "/dev/null/x",
            "/dev/fd/../../tmp/x",
            "/dev/fd/x",
            "/dev/pts/../../tmp/x",
            "/dev/pts/0",
            "/dev/sda",
            "/dev/tcp/h/1",
            "/tmp/dev/null",
            "./dev/null",
            "/dev/fd",
            "/dev/../dev/null",
            "/x/dev/null",
        ] {
            assert!(!is_harmless(path), "{path}");
        }
    }
}
