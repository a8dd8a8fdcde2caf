//! Collects what the parser finds.

use crate::{Block, BlockKind, Code, Command, Finding, Span};

/// The IR while it grows.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub(crate) blocks: Vec<Block>,
    pub(crate) commands: Vec<Command>,
    pub(crate) findings: Vec<Finding>,
    /// Where quoted text first held something that would be code if it were evaluated.
    pub(crate) quoted_code: Option<Span>,
}

impl Builder {
    pub(crate) fn open(&mut self, kind: BlockKind, span: Span, within: u32) -> u32 {
        let index = u32::try_from(self.blocks.len()).unwrap_or(u32::MAX);
        self.blocks.push(Block {
            kind,
            span,
            within: (index != 0).then_some(within),
            piped: false,
            redirections: Vec::new(),
            name: None,
            started_by: None,
        });
        index
    }

    /// Ends a block and gives the one around it.
    pub(crate) fn close(&mut self, block: u32, span: Span) -> u32 {
        match self.blocks.get_mut(block as usize) {
            Some(entry) => {
                entry.span = span;
                entry.within.unwrap_or(0)
            }
            None => 0,
        }
    }

    pub(crate) fn block(&mut self, block: u32) -> Option<&mut Block> {
        self.blocks.get_mut(block as usize)
    }

    /// Takes the place of a command in reading order, before its words are known.
    pub(crate) fn reserve(&mut self, block: u32) -> usize {
        self.commands.push(Command {
            block,
            ..Command::default()
        });
        self.commands.len() - 1
    }

    pub(crate) fn find(&mut self, code: Code, span: Span) {
        self.findings.push(Finding { span, code });
    }
}
