//! Prints what a command would do: `cargo run -p ringfence-shell --example explain -- 'sudo rm "$x"'`.

#![expect(clippy::print_stdout, reason = "printing is what this example is for")]

use ringfence_shell::{Ir, RuleSet, Verdict, decide, write_targets};

fn main() -> Result<(), serde_json::Error> {
    let text: Vec<_> = std::env::args().skip(1).collect();
    let text = text.join(" ");
    let ir = Ir::from_bash(&text);
    println!("{}", serde_json::to_string_pretty(&ir)?);
    for target in write_targets(&ir) {
        println!(
            "writes {}",
            target.path.as_deref().unwrap_or("a computed path")
        );
    }
    for rules in RuleSet::ALL {
        match decide(&ir, *rules) {
            Verdict::Allow => println!("{rules}: allow"),
            Verdict::Deny {
                code,
                span,
                message,
                instead,
            } => {
                println!(
                    "{rules}: deny ({code}) `{}`: {message}; instead, {instead}",
                    span.of(&text)
                );
            }
        }
    }
    Ok(())
}
