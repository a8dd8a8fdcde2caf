//! An IR as a tree: blocks, the commands in them, and what those start.

use std::fmt::Write as _;

use ringfence_core::text::printable;
use ringfence_shell::{Command, Ir, Redirection, Word, WriteTarget, command_line};

/// Everything that could run, where it stands and what it would write.
pub(crate) fn tree(ir: &Ir, targets: &[WriteTarget]) -> String {
    let mut out = String::from("could run\n");
    if let Some(refusal) = ir.refusal {
        let _ = writeln!(out, "  nothing that can be named: {refusal}");
    }
    Tree::new(ir).write(&mut out);
    out.push_str("would write\n");
    for target in targets {
        let path = target
            .path
            .as_deref()
            .map_or_else(|| COMPUTED.to_owned(), printable);
        let _ = writeln!(out, "  {path}  {}", place(target.span));
    }
    out.push_str("codes\n");
    for finding in &ir.findings {
        let _ = writeln!(out, "  {}  {}", finding.code, place(finding.span));
    }
    out
}

const COMPUTED: &str = "<computed>";

fn place(span: ringfence_shell::Span) -> String {
    format!("[{}..{}]", span.start, span.end)
}

/// What stands in what.
struct Tree<'i> {
    ir: &'i Ir,
    /// Written commands of each block.
    commands: Vec<Vec<usize>>,
    /// Blocks of each block; code that a command starts is under the command.
    blocks: Vec<Vec<usize>>,
    /// Commands and blocks that each command starts.
    started: Vec<(Vec<usize>, Vec<usize>)>,
}

/// One line of the tree that is still to be written.
enum Item {
    Block(usize, usize),
    Command(usize, usize),
}

impl<'i> Tree<'i> {
    fn new(ir: &'i Ir) -> Self {
        let mut tree = Self {
            ir,
            commands: vec![Vec::new(); ir.blocks.len()],
            blocks: vec![Vec::new(); ir.blocks.len()],
            started: vec![Default::default(); ir.commands.len()],
        };
        for (index, command) in ir.commands.iter().enumerate() {
            match command.started_by {
                Some(by) => {
                    if let Some((commands, _)) = tree.started.get_mut(by as usize) {
                        commands.push(index);
                    }
                }
                None => {
                    if let Some(commands) = tree.commands.get_mut(command.block as usize) {
                        commands.push(index);
                    }
                }
            }
        }
        for (index, block) in ir.blocks.iter().enumerate() {
            match (block.started_by, block.within) {
                (Some(by), _) => {
                    if let Some((_, blocks)) = tree.started.get_mut(by as usize) {
                        blocks.push(index);
                    }
                }
                (None, Some(within)) => {
                    if let Some(blocks) = tree.blocks.get_mut(within as usize) {
                        blocks.push(index);
                    }
                }
                (None, None) => {}
            }
        }
        tree
    }

    /// A loop with its own stack: nesting is bounded by the parser, but not for ever by us.
    fn write(&self, out: &mut String) {
        let mut left = Vec::new();
        self.push_children(&mut left, self.commands.first(), self.blocks.first(), 1);
        while let Some(item) = left.pop() {
            match item {
                Item::Command(index, depth) => {
                    let Some(command) = self.ir.commands.get(index) else {
                        continue;
                    };
                    let _ = writeln!(
                        out,
                        "{:indent$}{}  {}",
                        "",
                        words(command),
                        place(command.span),
                        indent = depth * 2
                    );
                    let started = self.started.get(index);
                    self.push_children(
                        &mut left,
                        started.map(|(commands, _)| commands),
                        started.map(|(_, blocks)| blocks),
                        depth + 1,
                    );
                }
                Item::Block(index, depth) => {
                    let Some(block) = self.ir.blocks.get(index) else {
                        continue;
                    };
                    let kind = serde_json::to_value(block.kind).unwrap_or_default();
                    let kind = kind.as_str().unwrap_or("block");
                    let _ = write!(out, "{:indent$}({kind}", "", indent = depth * 2);
                    for redirection in &block.redirections {
                        let _ = write!(out, " {}", redirected(redirection));
                    }
                    let _ = writeln!(out, ")  {}", place(block.span));
                    self.push_children(
                        &mut left,
                        self.commands.get(index),
                        self.blocks.get(index),
                        depth + 1,
                    );
                }
            }
        }
    }

    /// Puts what stands in something on the stack, in the order of the text.
    fn push_children(
        &self,
        left: &mut Vec<Item>,
        commands: Option<&Vec<usize>>,
        blocks: Option<&Vec<usize>>,
        depth: usize,
    ) {
        let from = left.len();
        let commands = commands.into_iter().flatten();
        left.extend(commands.map(|index| Item::Command(*index, depth)));
        let blocks = blocks.into_iter().flatten();
        left.extend(blocks.map(|index| Item::Block(*index, depth)));
        if let Some(new) = left.get_mut(from..) {
            new.sort_by_key(|item| std::cmp::Reverse(self.start_of(item)));
        }
    }

    fn start_of(&self, item: &Item) -> u32 {
        let span = match item {
            Item::Block(index, _) => self.ir.blocks.get(*index).map(|block| block.span),
            Item::Command(index, _) => self.ir.commands.get(*index).map(|command| command.span),
        };
        span.map_or(0, |span| span.start)
    }
}

fn words(command: &Command) -> String {
    let assignments = command.assignments.iter().map(|assignment| {
        let (name, value) = (&assignment.name, &assignment.value);
        format!("{}={}", printable(name), shown(value))
    });
    let words = command.words.iter().map(shown);
    let redirections = command.redirections.iter().map(redirected);
    let all: Vec<String> = assignments.chain(words).chain(redirections).collect();
    all.join(" ")
}

/// A word as it is known: `<computed>` stands where it is filled at run time.
fn shown(word: &Word) -> String {
    if let Some(text) = word.literal() {
        return printable(&command_line([text]));
    }
    let mut out = String::new();
    let mut from = 0;
    for hole in &word.holes {
        let at = (hole.at as usize).clamp(from, word.text.len());
        out.push_str(&printable(word.text.get(from..at).unwrap_or_default()));
        out.push_str(COMPUTED);
        from = at;
    }
    out.push_str(&printable(word.text.get(from..).unwrap_or_default()));
    out
}

fn redirected(redirection: &Redirection) -> String {
    let kind = serde_json::to_value(redirection.kind).unwrap_or_default();
    let kind = kind.as_str().unwrap_or("redirection").to_owned();
    format!("<{kind} {}>", shown(&redirection.target))
}
