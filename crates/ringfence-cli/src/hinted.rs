//! Values that completions offer, of arguments that take others, too.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};

/// A parser whose usual values are known. It refuses what it refuses by itself, in its own words.
#[derive(Clone)]
pub(crate) struct Hinted<P> {
    parser: P,
    usual: fn() -> Vec<&'static str>,
}

/// Lets completions offer the usual values.
pub(crate) fn hinted<P: TypedValueParser>(
    parser: P,
    usual: fn() -> Vec<&'static str>,
) -> Hinted<P> {
    Hinted { parser, usual }
}

impl<P: TypedValueParser> TypedValueParser for Hinted<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, Error> {
        self.parser.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.usual)().into_iter().map(PossibleValue::new)))
    }
}
