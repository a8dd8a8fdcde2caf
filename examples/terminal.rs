//! A tiny terminal emulator: a confined program on a screen of our own.
//!
//! ```console
//! $ cargo run -p ringfence --example terminal -- ls -l
//! ```
//!
//! The program gets a terminal from the session's own `/dev/pts`; we are at its other end. What it
//! shows is drawn on a grid of characters, which is printed when the session is over. Escape
//! sequences are read only as far as this takes.
#![expect(clippy::print_stdout, reason = "an example talks to whoever tries it")]

use std::error::Error;
use std::io::{Read, Write};

use ringfence::{Policy, Sandbox, Size};

const SIZE: Size = Size {
    rows: 12,
    columns: 60,
};

fn main() -> Result<(), Box<dyn Error>> {
    // Only where a packaged bubblewrap has to make the namespaces is this program started again.
    ringfence::shim::run_if_asked();
    let mut words = std::env::args_os().skip(1);
    let program = words.next().unwrap_or_else(|| "tty".into());
    let sandbox = Sandbox::new(Policy::terminal("."))?;
    let mut command = sandbox.command(program);
    command.args(words).env("TERM", "dumb").pty(SIZE);
    let mut session = command.spawn()?;
    let Some(mut terminal) = session.terminal.take() else {
        return Err("the session has no terminal".into());
    };
    // Keys would go this way.
    terminal.write_all(b"\x04")?;
    let mut screen = Screen::new(SIZE);
    let mut chunk = [0; 4096];
    loop {
        match terminal.read(&mut chunk)? {
            0 => break,
            count => screen.show(chunk.get(..count).unwrap_or_default()),
        }
    }
    let report = session.wait()?;
    let frame = "-".repeat(usize::from(SIZE.columns));
    println!("+{frame}+");
    for line in screen.lines() {
        println!("|{line}|");
    }
    println!("+{frame}+ {:?}", report.cause);
    Ok(())
}

/// A grid of characters, and where the next one goes.
struct Screen {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    escape: Escape,
}

/// How far into an escape sequence we are.
#[derive(Clone, Copy, PartialEq)]
enum Escape {
    None,
    Begun,
    Parameters,
}

impl Screen {
    fn new(size: Size) -> Self {
        let row = vec![' '; usize::from(size.columns)];
        Self {
            rows: vec![row; usize::from(size.rows)],
            row: 0,
            column: 0,
            escape: Escape::None,
        }
    }

    fn show(&mut self, bytes: &[u8]) {
        for character in String::from_utf8_lossy(bytes).chars() {
            match (self.escape, character) {
                (_, '\x1b') => self.escape = Escape::Begun,
                (Escape::Begun, '[') => self.escape = Escape::Parameters,
                (Escape::Begun, _) | (Escape::Parameters, '@'..='~') => self.escape = Escape::None,
                (Escape::Parameters, _) => {}
                (Escape::None, '\r') => self.column = 0,
                (Escape::None, '\n') => self.next_row(),
                (Escape::None, '\x08') => self.column = self.column.saturating_sub(1),
                (Escape::None, character) if character.is_control() => {}
                (Escape::None, character) => self.draw(character),
            }
        }
    }

    fn draw(&mut self, character: char) {
        let width = self.rows.first().map_or(0, Vec::len);
        if self.column == width {
            self.column = 0;
            self.next_row();
        }
        let row = self.rows.get_mut(self.row);
        if let Some(cell) = row.and_then(|row| row.get_mut(self.column)) {
            *cell = character;
        }
        self.column += 1;
    }

    fn next_row(&mut self) {
        if self.row + 1 < self.rows.len() {
            self.row += 1;
        } else {
            self.rows.rotate_left(1);
            if let Some(last) = self.rows.last_mut() {
                last.fill(' ');
            }
        }
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        self.rows.iter().map(|row| row.iter().collect())
    }
}
