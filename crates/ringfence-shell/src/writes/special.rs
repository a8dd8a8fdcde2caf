//! Commands that a list of options cannot describe.

use super::WriteTarget;
use crate::{Command, Word};

fn value_of<'w>(word: &'w Word, text: &'w str) -> WriteTarget {
    WriteTarget {
        span: word.span,
        path: word.holes.is_empty().then(|| text.to_owned()),
    }
}

/// `sed -i`, `w file`, and the `e` flag.
pub(super) fn sed(words: &[Word], targets: &mut Vec<WriteTarget>) {
    let mut operands: Vec<&Word> = Vec::new();
    let mut scripts: Vec<&Word> = Vec::new();
    let (mut in_place, mut has_script) = (false, false);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let text = word.text.as_str();
        if let Some(long) = text.strip_prefix("--") {
            in_place |=
                long.starts_with("in-place") || (long.len() > 1 && "in-place".starts_with(long));
            if long == "expression" || long == "file" {
                has_script = true;
                scripts.extend(words.get(at).filter(|_| long == "expression"));
                at += 1;
            } else if long.starts_with("expression=") || long.starts_with("file=") {
                has_script = true;
                scripts.extend(long.starts_with("expression=").then_some(word));
            } else if long.is_empty() {
                operands.extend(words.get(at..).unwrap_or_default());
                break;
            }
        } else if text.starts_with('-') && text.len() > 1 {
            for (index, letter) in text.char_indices().skip(1) {
                match letter {
                    'i' => {
                        in_place = true;
                        break;
                    }
                    'e' | 'f' => {
                        has_script = true;
                        let attached = index + 1 < text.len();
                        scripts.extend(
                            if attached { Some(word) } else { words.get(at) }
                                .filter(|_| letter == 'e'),
                        );
                        at += usize::from(!attached);
                        break;
                    }
                    'l' => {
                        at += usize::from(index + 1 == text.len());
                        break;
                    }
                    _ => {}
                }
            }
        } else {
            operands.push(word);
        }
    }
    if !has_script && !operands.is_empty() {
        scripts.push(operands.remove(0));
    }
    if in_place {
        targets.extend(operands.into_iter().map(WriteTarget::of));
    }
    for script in scripts {
        sed_script(script, targets);
    }
}

/// Looks for `w`, `W` and `e` in a sed script; what it does not understand may be one of them.
fn sed_script(word: &Word, targets: &mut Vec<WriteTarget>) {
    let text = word.text.as_str();
    let text = text
        .strip_prefix("--expression=")
        .or_else(|| text.strip_prefix("-e"))
        .unwrap_or(text);
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|character: char| {
            character.is_whitespace() || ";{}!,".contains(character)
        });
        let Some(first) = rest.chars().next() else {
            return;
        };
        match first {
            '0'..='9' | '$' | '~' | '+' | 'I' | 'M' => rest = rest.get(1..).unwrap_or_default(),
            '/' => match after_delimited(rest.get(1..).unwrap_or_default(), '/') {
                Some(after) => rest = after,
                None => return,
            },
            '\\' => {
                let delimiter = rest.chars().nth(1).unwrap_or('/');
                match after_delimited(
                    rest.get(1 + delimiter.len_utf8()..).unwrap_or_default(),
                    delimiter,
                ) {
                    Some(after) => rest = after,
                    None => return,
                }
            }
            's' | 'y' => {
                let delimiter = rest.chars().nth(1).unwrap_or('/');
                let body = rest.get(1 + delimiter.len_utf8()..).unwrap_or_default();
                let Some(flags) = after_delimited(body, delimiter)
                    .and_then(|second| after_delimited(second, delimiter))
                else {
                    return;
                };
                let end = flags.find([';', '}', '\n']).unwrap_or(flags.len());
                let own = flags.get(..end).unwrap_or_default();
                if first == 's' && own.trim_end().contains('e') && !own.contains('w') {
                    targets.push(WriteTarget::computed(word.span));
                }
                if first == 's'
                    && let Some((_, path)) = flags
                        .split('\n')
                        .next()
                        .unwrap_or_default()
                        .split_once('w')
                        .filter(|(before, _)| {
                            before.chars().all(|flag| flag.is_ascii_alphanumeric())
                        })
                {
                    targets.push(value_of(word, path.trim()));
                    return;
                }
                rest = flags.get(end..).unwrap_or_default();
            }
            'w' | 'W' => {
                let path = rest
                    .get(1..)
                    .unwrap_or_default()
                    .split('\n')
                    .next()
                    .unwrap_or_default();
                targets.push(value_of(word, path.trim()));
                return;
            }
            'e' => {
                targets.push(WriteTarget::computed(word.span));
                return;
            }
            // The rest of the line is text, a label or a file to read.
            'a' | 'i' | 'c' | 'r' | 'R' | ':' | '#' => match rest.split_once('\n') {
                Some((_, after)) => rest = after,
                None => return,
            },
            _ => {
                let end = rest.find([';', '\n', '}']).unwrap_or(rest.len());
                rest = rest.get(end..).unwrap_or_default();
            }
        }
    }
}

/// What follows the next delimiter that is neither escaped nor in a bracket expression.
fn after_delimited(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    let mut bracket: Option<usize> = None;
    for (index, character) in text.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match character {
            '\\' if bracket.is_none() => escaped = true,
            '[' if bracket.is_none() => bracket = Some(index),
            ']' if bracket.is_some_and(|open| {
                let inside = text.get(open + 1..index).unwrap_or_default();
                !inside.is_empty() && inside != "^"
            }) =>
            {
                bracket = None;
            }
            _ if character == delimiter && bracket.is_none() => {
                return text.get(index + character.len_utf8()..);
            }
            _ => {}
        }
    }
    None
}

/// `-i` of perl and ruby, alone, with a suffix, or in a cluster.
pub(super) fn in_place(words: &[Word], targets: &mut Vec<WriteTarget>) {
    let mut operands = Vec::new();
    let (mut in_place, mut code) = (false, false);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let text = word.text.as_str();
        if !text.starts_with('-') || text == "-" {
            operands.push(word);
            continue;
        }
        for (index, letter) in text.char_indices().skip(1) {
            match letter {
                'i' => {
                    in_place = true;
                    // In `-i.bak` the rest is the suffix; in `-ie` perl takes `e` for one, too.
                    break;
                }
                'e' | 'E' => {
                    code = true;
                    at += usize::from(index + 1 == text.len());
                    break;
                }
                'I' | 'M' | 'm' | 'C' | 'r' | 'x' | 'F' | 'D' => break,
                _ => {}
            }
        }
    }
    if in_place {
        // Without `-e` the first operand is the program.
        targets.extend(
            operands
                .into_iter()
                .skip(usize::from(!code))
                .map(WriteTarget::of),
        );
    }
}

/// `print > "file"`, `system()`, pipes, and `-i inplace`.
pub(super) fn awk(words: &[Word], targets: &mut Vec<WriteTarget>) {
    let in_place = words.windows(2).any(|pair| {
        matches!(pair, [option, value] if matches!(option.literal(), Some("-i" | "--include")) && value.text.contains("inplace"))
    });
    let mut operands = words.iter().enumerate().filter(|(index, word)| {
        let value = *index > 0
            && words.get(index - 1).is_some_and(|before| {
                matches!(
                    before.text.as_str(),
                    "-F" | "-v" | "-i" | "-f" | "-l" | "--include"
                )
            });
        !value && !word.text.starts_with('-')
    });
    let from_file = words.iter().any(|word| word.text.starts_with("-f"));
    if !from_file
        && let Some((_, program)) = operands.next()
        && awk_writes(&program.text)
    {
        targets.push(WriteTarget::computed(program.span));
    }
    if in_place {
        targets.extend(
            operands
                .map(|(_, word)| WriteTarget::of(word))
                .filter(|target| {
                    target
                        .path
                        .as_deref()
                        .is_none_or(|path| !path.contains('='))
                }),
        );
    }
}

fn awk_writes(program: &str) -> bool {
    if program.contains("system") || program.contains("|&") || program.contains(">>") {
        return true;
    }
    // `print x > y` and `print x | y`; a bare comparison or `||` is neither.
    program.split([';', '}', '\n', '{']).any(|statement| {
        statement.find("print").is_some_and(|at| {
            let rest = statement
                .get(at..)
                .unwrap_or_default()
                .replace("||", "")
                .replace(">=", "");
            let mut parens = 0_i32;
            let mut quoted = false;
            let mut before = ' ';
            rest.chars().any(|character| {
                let writes = matches!(character, '>' | '|') && !quoted && parens <= 0;
                match character {
                    '"' if before != '\\' => quoted = !quoted,
                    '(' if !quoted => parens += 1,
                    ')' if !quoted => parens -= 1,
                    _ => {}
                }
                before = character;
                writes
            })
        })
    }) || program.contains("| getline")
        || program.contains("|getline")
}

/// `-delete` and the `-fprint` family; `-exec` is a command of its own.
pub(super) fn find(words: &[Word], targets: &mut Vec<WriteTarget>) {
    let roots = words.iter().take_while(|word| {
        !word.prefix().starts_with(['-', '(', '!'])
            || matches!(word.text.as_str(), "-H" | "-L" | "-P")
    });
    let roots: Vec<_> = roots.filter(|word| !word.text.starts_with('-')).collect();
    for (index, word) in words.iter().enumerate() {
        match word.literal() {
            Some("-delete") if roots.is_empty() => {
                targets.push(WriteTarget {
                    span: word.span,
                    path: Some(".".to_owned()),
                });
            }
            Some("-delete") => targets.extend(roots.iter().map(|root| WriteTarget::of(root))),
            Some("-fprint" | "-fprint0" | "-fls" | "-fprintf") => {
                targets.extend(words.get(index + 1).map(WriteTarget::of));
            }
            _ => {}
        }
    }
}

/// curl and wget: they write where an option says, or (wget, `curl -O`) where the address says.
pub(super) fn curl(command: &Command, words: &[Word], targets: &mut Vec<WriteTarget>) {
    let wget = command.name() == Some("wget");
    let (short, long) = if wget {
        ('O', "output-document")
    } else {
        ('o', "output")
    };
    let takes_value = if wget {
        "aeiBPQTUwtDAR"
    } else {
        "AbcCdDeEFhHKmPQrTuUvwxXyYz"
    };
    let (mut named, mut elsewhere) = (false, false);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let text = word.text.as_str();
        if let Some(option) = text.strip_prefix("--") {
            let (option, value) = option
                .split_once('=')
                .map_or((option, None), |(option, value)| (option, Some(value)));
            if option == long {
                named = true;
                match value {
                    Some(value) => targets.push(value_of(word, value)),
                    None => targets.extend(words.get(at).map(WriteTarget::of)),
                }
                at += usize::from(value.is_none());
            }
            elsewhere |= matches!(
                option,
                "remote-name"
                    | "remote-name-all"
                    | "cookie-jar"
                    | "dump-header"
                    | "trace"
                    | "directory-prefix"
            );
            named |= wget && matches!(option, "spider" | "version" | "help");
        } else if text.starts_with('-') {
            for (index, letter) in text.char_indices().skip(1) {
                let attached = text.get(index + letter.len_utf8()..).unwrap_or_default();
                if letter == short {
                    named = true;
                    if attached.is_empty() && word.holes.is_empty() {
                        targets.extend(words.get(at).map(WriteTarget::of));
                        at += 1;
                    } else {
                        targets.push(value_of(word, attached));
                    }
                    break;
                }
                elsewhere |= !wget && matches!(letter, 'O' | 'c' | 'D');
                if takes_value.contains(letter) && letter != 'v' && !(letter == 'h' && wget) {
                    at += usize::from(attached.is_empty());
                    break;
                }
            }
        }
    }
    targets.retain(|target| target.path.as_deref() != Some("-"));
    if elsewhere || (wget && !named && !words.is_empty()) {
        targets.push(WriteTarget::computed(command.span));
    }
}

/// tar: extraction writes the directory, creation the archive.
pub(super) fn tar(command: &Command, words: &[Word], targets: &mut Vec<WriteTarget>) {
    let (mut extracts, mut creates, mut lists) = (false, false, false);
    let (mut archive, mut directory) = (None, None);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let first = at == 0;
        at += 1;
        let text = word.text.as_str();
        if let Some(option) = text.strip_prefix("--") {
            let (option, value) = option
                .split_once('=')
                .map_or((option, None), |(option, value)| (option, Some(value)));
            let mut target = || {
                let target = match value {
                    Some(value) => Some(value_of(word, value)),
                    None => words.get(at).map(WriteTarget::of),
                };
                at += usize::from(value.is_none());
                target
            };
            match option {
                "extract" | "get" => extracts = true,
                "create" | "append" | "update" | "delete" | "catenate" | "concatenate" => {
                    creates = true;
                }
                "list" | "diff" | "compare" => lists = true,
                "file" => archive = target(),
                "directory" => directory = target(),
                _ => {}
            }
        } else if text.starts_with('-') || first {
            for (index, letter) in text.char_indices().skip(usize::from(text.starts_with('-'))) {
                let attached = text.get(index + letter.len_utf8()..).unwrap_or_default();
                match letter {
                    'x' => extracts = true,
                    'c' | 'r' | 'u' | 'A' => creates = true,
                    't' | 'd' => lists = true,
                    'f' | 'C' => {
                        let bundled = !text.starts_with('-');
                        let target = if attached.is_empty() || bundled {
                            words.get(at).map(WriteTarget::of)
                        } else {
                            Some(value_of(word, attached))
                        };
                        at += usize::from(attached.is_empty() || bundled);
                        if letter == 'f' {
                            archive = target;
                        } else {
                            directory = target;
                        }
                        if !bundled {
                            break;
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    if extracts {
        targets.push(directory.unwrap_or_else(|| WriteTarget::computed(command.span)));
    } else if creates {
        targets.extend(archive.filter(|target| target.path.as_deref() != Some("-")));
    } else if !lists && words.iter().any(|word| !word.holes.is_empty()) {
        targets.push(WriteTarget::computed(command.span));
    }
}
