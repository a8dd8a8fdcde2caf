//! From text to IR: the one door.

use crate::lower::lower;
use crate::parse::{self, Base, Builder, Reader};
use crate::{BlockKind, Code, Dialect, Finding, IR_VERSION, Ir, Refusal, Span};

impl Ir {
    /// Reads what `bash -c text` would run. The same text always gives the same IR.
    ///
    /// There is no error: a text that cannot be read for certain gives an IR that says why in
    /// [`Ir::refusal`], and every rule set denies it.
    pub fn from_bash(text: impl AsRef<[u8]>) -> Self {
        let text = text.as_ref();
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let mut out = Builder::default();
        match read(text, length, &mut out) {
            Ok(()) => {
                out.findings.sort_unstable();
                out.findings.dedup();
                Self {
                    version: IR_VERSION,
                    dialect: Dialect::Bash,
                    length,
                    blocks: out.blocks,
                    commands: out.commands,
                    findings: out.findings,
                    refusal: None,
                }
            }
            Err(refusal) => Self {
                version: IR_VERSION,
                dialect: Dialect::Bash,
                length,
                blocks: Vec::new(),
                commands: Vec::new(),
                findings: vec![Finding {
                    span: refusal.span,
                    code: Code::SyntaxError,
                }],
                refusal: Some(refusal),
            },
        }
    }
}

fn read(text: &[u8], length: u32, out: &mut Builder) -> Result<(), Refusal> {
    let characters = parse::vet(text)?;
    let whole = Span {
        start: 0,
        end: length,
    };
    let script = out.open(BlockKind::Script, whole, 0);
    parse::parse(text, Base::At(0), Reader::Bash, 0, script, out)?;
    if !text.is_ascii() {
        let turned = characters
            .char_indices()
            .find(|(_, character)| parse::turns_text(*character));
        if let Some((at, character)) = turned {
            let start = u32::try_from(at).unwrap_or(u32::MAX);
            let end = u32::try_from(at + character.len_utf8()).unwrap_or(u32::MAX);
            out.find(Code::Lookalike, Span { start, end });
        }
    }
    lower(text, out)
}
