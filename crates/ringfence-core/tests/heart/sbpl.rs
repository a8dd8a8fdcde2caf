//! The language of Seatbelt profiles, as far as ours use it: a reader and an evaluator.

/// An expression.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Expression {
    List(Vec<Expression>),
    Text(String),
    Word(String),
}

use Expression::{List, Text, Word};

/// Reads a whole text. It knows no escapes, because no text may need one.
pub(crate) fn read(text: &str) -> Result<Vec<Expression>, String> {
    let mut open: Vec<Vec<Expression>> = vec![Vec::new()];
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let top = open.last_mut().unwrap();
        if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
        } else if first == ';' {
            rest = &rest[rest.find('\n').ok_or("a comment without an end")?..];
        } else if first == '(' {
            open.push(Vec::new());
            rest = &rest[1..];
        } else if first == ')' {
            let list = open.pop().unwrap();
            open.last_mut()
                .ok_or("one parenthesis too many")?
                .push(List(list));
            rest = &rest[1..];
        } else if let Some(body) = rest.strip_prefix("#\"").or_else(|| rest.strip_prefix('"')) {
            let end = body.find('"').ok_or("a string without an end")?;
            if body[..end].contains(['\\', '\n']) {
                return Err(format!("a string that needs escapes: {}", &body[..end]));
            }
            top.push(Text(body[..end].to_owned()));
            rest = &body[end + 1..];
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || "()\";".contains(c));
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            top.push(Word(word.to_owned()));
            rest = after;
        }
    }
    match (open.len(), open.pop()) {
        (1, Some(list)) => Ok(list),
        _ => Err("a parenthesis that is not closed".to_owned()),
    }
}

/// What somebody wants to do.
#[derive(Clone, Debug)]
pub(crate) enum Request<'a> {
    File(&'a str, &'a str),
    Mach(&'a str),
    Other(&'a str),
    Port(&'a str, &'a str),
    Socket(&'a str),
    Sysctl(&'a str),
}

impl Request<'_> {
    fn operation(&self) -> &str {
        match self {
            Self::File(operation, _) | Self::Other(operation) | Self::Port(operation, _) => {
                operation
            }
            Self::Mach(_) => "mach-lookup",
            Self::Socket(_) => "network-outbound",
            Self::Sysctl(_) => "sysctl-read",
        }
    }
}

/// Whether a profile allows a request: the last rule that matches says so.
pub(crate) fn allows(
    profile: &[Expression],
    parameters: &[(String, String)],
    request: &Request<'_>,
) -> bool {
    let mut allowed = None;
    for expression in profile {
        let List(parts) = expression else {
            panic!("{expression:?}")
        };
        let [Word(head), rest @ ..] = parts.as_slice() else {
            panic!("{parts:?}")
        };
        let action = match head.as_str() {
            "version" => continue,
            "allow" => true,
            "deny" => false,
            other => panic!("{other} is not a rule"),
        };
        let mut operations = Vec::new();
        let mut filters = Vec::new();
        for part in rest {
            match part {
                Word(operation) => operations.push(operation.as_str()),
                List(filter) => filters.push(filter),
                Text(text) => panic!("{text:?} is neither operation nor filter"),
            }
        }
        let concerned = operations
            .iter()
            .any(|known| covers(known, request.operation()));
        let matched = filters.is_empty()
            || filters
                .iter()
                .any(|filter| holds(filter, parameters, request));
        if concerned && matched {
            allowed = Some(action);
        }
    }
    allowed.expect("a profile says what its default is")
}

fn covers(rule: &str, operation: &str) -> bool {
    rule == "default"
        || rule == operation
        || rule
            .strip_suffix('*')
            .is_some_and(|start| operation.starts_with(start))
}

fn value<'p>(expression: &'p Expression, parameters: &'p [(String, String)]) -> &'p str {
    match expression {
        Text(text) => text,
        List(parts) => match parts.as_slice() {
            [Word(head), Text(name)] if head == "param" => {
                let found = parameters.iter().find(|(known, _)| known == name);
                &found.expect("a parameter that is not given").1
            }
            other => panic!("{other:?}"),
        },
        Word(word) => panic!("{word}"),
    }
}

fn holds(filter: &[Expression], parameters: &[(String, String)], request: &Request<'_>) -> bool {
    let [Word(kind), arguments @ ..] = filter else {
        panic!("{filter:?}")
    };
    let path = match request {
        Request::File(_, path) | Request::Socket(path) => Some(*path),
        _ => None,
    };
    match (kind.as_str(), arguments) {
        ("literal", [of]) => path == Some(value(of, parameters)),
        ("subpath", [of]) => path.is_some_and(|path| {
            let tree = value(of, parameters);
            let below = path
                .strip_prefix(tree)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            below || tree == "/"
        }),
        ("regex", [Text(pattern)]) => path.is_some_and(|path| matches(pattern, path)),
        ("require-all", parts) => parts.iter().all(|part| match part {
            List(part) => holds(part, parameters, request),
            other => panic!("{other:?}"),
        }),
        ("global-name", [Text(name)]) => {
            matches!(request, Request::Mach(asked) if asked == name)
        }
        ("sysctl-name", [Text(name)]) => {
            matches!(request, Request::Sysctl(asked) if asked == name)
        }
        ("remote" | "local", [Word(family), Text(place)]) if family == "ip" => {
            matches!(request, Request::Port(_, asked) if asked == place)
        }
        ("remote", [Word(family)]) if family == "unix-socket" => {
            matches!(request, Request::Socket(_))
        }
        // An extension is given to terminals that were opened inside; none of ours was.
        ("target", [Word(_)])
        | ("extension" | "iokit-registry-entry-class" | "ipc-posix-name", [Text(_)]) => false,
        other => panic!("{other:?} is no filter that profiles use"),
    }
}

/// The few patterns that profiles use: letters, classes of letters, `[^/]+`, and an end.
fn matches(pattern: &str, text: &str) -> bool {
    let body = pattern
        .strip_prefix('^')
        .expect("a pattern begins at the beginning");
    step(body, text)
}

fn step(pattern: &str, text: &str) -> bool {
    match pattern {
        "" => true,
        "$" => text.is_empty(),
        "(/|$)" => text.is_empty() || text.starts_with('/'),
        _ => {
            if let Some(rest) = pattern.strip_prefix("[^/]+") {
                return longer(rest, text, |c| c != '/');
            }
            if let Some(rest) = pattern.strip_prefix("[0-9]+") {
                return longer(rest, text, |c| c.is_ascii_digit());
            }
            let Some(next) = text.chars().next() else {
                return false;
            };
            let after = &text[next.len_utf8()..];
            if let Some(class) = pattern.strip_prefix('[') {
                let (class, rest) = class.split_once(']').unwrap();
                return class.contains(next) && step(rest, after);
            }
            let wanted = pattern.chars().next().unwrap();
            assert!(!"\\*?{|".contains(wanted), "{pattern}");
            wanted == next && step(&pattern[wanted.len_utf8()..], after)
        }
    }
}

fn longer(rest: &str, text: &str, of: impl Fn(char) -> bool) -> bool {
    let ends = text
        .char_indices()
        .take_while(|(_, c)| of(*c))
        .map(|(at, c)| at + c.len_utf8());
    ends.collect::<Vec<_>>()
        .into_iter()
        .any(|end| step(rest, &text[end..]))
}

#[test]
fn the_evaluator_can_say_no() {
    let rules = read("(version 1)(deny default)(allow file-read* (subpath \"/a\"))(deny file-read-data (literal \"/a/b\"))").unwrap();
    let may = |operation, path| allows(&rules, &[], &Request::File(operation, path));
    assert!(may("file-read-data", "/a") && may("file-read-data", "/a/c"));
    assert!(!may("file-read-data", "/a/b") && may("file-read-metadata", "/a/b"));
    assert!(!may("file-read-data", "/ab") && !may("file-write-data", "/a"));
    assert!(matches("^/[aA][^/]+[.]x(/|$)", "/Abc.x/y") && !matches("^/[aA](/|$)", "/ab"));
    assert!(read("(a").is_err() && read("a)").is_err() && read("(\"a\\\"b\")").is_err());
}
