//! From JSON with comments to typed keys, every mistake collected.
//!
//! Reading opens nothing. Relative paths are joined to the directory of the file that names
//! them; `~`, `$HOME` and `$PROJECT` are replaced here, once, and never again.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::values::Word;
use crate::origin::{Cursor, Located, Origin, Source};
use crate::problem::{Problem, nearest};

/// A settings file is read whole into memory; this is far more than anybody writes by hand.
pub const LARGEST_FILE: usize = 1 << 20;

/// Nobody reads more, and a file may hold a hundred thousand.
const MOST_PROBLEMS: usize = 100;

/// What paths in a file are relative to.
#[derive(Clone, Debug, Default)]
pub struct Base {
    /// The directory that holds the file.
    pub directory: PathBuf,
    /// `$HOME`, if there is one.
    pub home: Option<PathBuf>,
    /// The project's root, if it is known.
    pub project: Option<PathBuf>,
}

/// What may be written besides plain JSON: comments and trailing commas.
pub(super) fn strict() -> ParseOptions {
    ParseOptions {
        allow_bare_decimal_point_numbers: false,
        allow_comments: true,
        allow_extended_string_escapes: false,
        allow_hexadecimal_numbers: false,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_non_finite_numbers: false,
        allow_single_quoted_strings: false,
        allow_trailing_commas: true,
        allow_unary_plus_numbers: false,
    }
}

/// Some editors start a file with a mark that says it is Unicode. The parser does not know it; as
/// blanks of the same length it moves nothing.
pub(super) fn unmarked(text: &str) -> Cow<'_, str> {
    text.strip_prefix('\u{feff}')
        .map_or(Cow::Borrowed(text), |rest| format!("   {rest}").into())
}

/// Parses a text and hands the top-level object to `read`.
pub(super) fn parse_object<'a>(
    source: &'a Source,
    read: impl FnOnce(&mut Reader<'a>, &Object<'_>),
    base: &'a Base,
) -> Vec<Problem> {
    let text = source.text();
    if text.len() > LARGEST_FILE {
        return vec![Problem::error(
            0..0,
            "the file is larger than 1 MiB",
            "too large",
        )];
    }
    let mut reader = Reader {
        source,
        base,
        cursor: Cell::default(),
        problems: Vec::new(),
    };
    match parse_to_ast(&unmarked(text), &CollectOptions::default(), &strict()) {
        Err(error) => {
            let range = error.range();
            let message = lower_first(&error.kind().to_string());
            reader.problems.push(Problem::error(
                range.start..range.end,
                format!("not valid JSON: {message}"),
                message,
            ));
        }
        Ok(parsed) => match parsed.value {
            // An empty file, or only comments: no settings.
            None => {}
            Some(Value::Object(object)) => read(&mut reader, &object),
            Some(other) => reader.wrong_type(&other, "an object"),
        },
    }
    reader.problems
}

/// Reads values of one file and collects what is wrong with them.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    source: &'a Source,
    base: &'a Base,
    cursor: Cell<Cursor>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    pub(super) fn origin(&self, span: &Range<usize>) -> Origin {
        let (origin, cursor) = self.source.origin_after(self.cursor.get(), span.start);
        self.cursor.set(cursor);
        origin
    }

    pub(super) fn problem(&mut self, problem: Problem) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(problem);
        }
    }

    /// Hands each property to `key`, which says whether it knows the name.
    pub(super) fn each_key(
        &mut self,
        object: &Object<'_>,
        known: &[&'static str],
        mut key: impl FnMut(&mut Self, &str, &Value<'_>) -> bool,
    ) {
        let mut seen: HashSet<&str> = HashSet::new();
        for property in &object.properties {
            let name = property.name.as_str();
            if !seen.insert(name) {
                self.problem(Problem::error(
                    span_of(&property.name),
                    format!(
                        "the key `{}` is written twice",
                        crate::text::printable(name)
                    ),
                    "the second one",
                ));
                continue;
            }
            if !key(self, name, &property.value) {
                self.unknown_key(property, known);
            }
        }
    }

    fn unknown_key(&mut self, property: &ObjectProp<'_>, known: &[&'static str]) {
        let name = property.name.as_str();
        let mut problem = Problem::error(
            span_of(&property.name),
            format!("unknown key `{}`", crate::text::printable(name)),
            "not a key that ringfence knows",
        );
        problem = match nearest(name, known.iter().copied()) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem.help(format!("the keys here are: {}", known.join(", "))),
        };
        self.problem(problem);
    }

    pub(super) fn wrong_type(&mut self, value: &Value<'_>, expected: &str) {
        let found = match value {
            Value::Array(_) => "an array",
            Value::BooleanLit(_) => "a boolean",
            Value::NullKeyword(_) => "null",
            Value::NumberLit(_) => "a number",
            Value::Object(_) => "an object",
            Value::StringLit(_) => "a string",
        };
        self.problem(Problem::error(
            span_of(value),
            format!("expected {expected}, found {found}"),
            format!("this must be {expected}"),
        ));
    }

    /// Joins what a file wrote to what it is relative to.
    fn path(&mut self, text: &str, span: &Range<usize>) -> Option<PathBuf> {
        if text.is_empty() {
            self.problem(Problem::error(
                span.clone(),
                "the path is empty",
                "write a path",
            ));
            return None;
        }
        if text.contains('\0') {
            self.problem(Problem::error(
                span.clone(),
                "the path has a zero byte in it",
                "no file has such a name",
            ));
            return None;
        }
        let prefixes: [(&str, Option<&Path>); 3] = [
            ("~", self.base.home.as_deref()),
            ("$HOME", self.base.home.as_deref()),
            ("$PROJECT", self.base.project.as_deref()),
        ];
        for (prefix, directory) in prefixes {
            let Some(rest) = text.strip_prefix(prefix) else {
                continue;
            };
            if !rest.is_empty() && !rest.starts_with('/') {
                continue;
            }
            let Some(directory) = directory else {
                self.problem(Problem::error(
                    span.clone(),
                    format!("`{prefix}` is not known here"),
                    "write the path in full",
                ));
                return None;
            };
            return Some(directory.join(rest.trim_start_matches('/')));
        }
        if text.starts_with('~') || text.starts_with('$') {
            self.problem(
                Problem::error(
                    span.clone(),
                    "other users' homes and other variables are not expanded",
                    "write the path in full",
                )
                .help("`~/`, `$HOME/` and `$PROJECT/` are; a name that really starts so is written `./~name`"),
            );
            return None;
        }
        Some(self.base.directory.join(text))
    }
}

/// The bytes a node covers.
pub(super) fn span_of(node: &impl Ranged) -> Range<usize> {
    let range = node.range();
    range.start..range.end
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(characters).collect()
    })
}

/// Something that stands behind a key.
pub(super) trait Readable: Sized {
    /// Reads it, or says what is wrong and gives nothing.
    #[doc(hidden)]
    fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self>;

    /// What an operating system's part of the file leaves of it: nothing, unless it is a map.
    #[doc(hidden)]
    #[must_use]
    fn overlaid(self, stronger: Self) -> Self {
        stronger
    }
}

impl Readable for bool {
    fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let Value::BooleanLit(literal) = value else {
            reader.wrong_type(value, "`true` or `false`");
            return None;
        };
        Some(literal.value)
    }
}

impl Readable for u16 {
    fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let Value::NumberLit(literal) = value else {
            reader.wrong_type(value, "a port number");
            return None;
        };
        let port = literal.value.parse().ok().filter(|port| *port != 0);
        if port.is_none() {
            reader.problem(Problem::error(
                span_of(value),
                "a port is a whole number from 1 to 65535",
                "not a port",
            ));
        }
        port
    }
}

impl Readable for String {
    fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let Value::StringLit(literal) = value else {
            reader.wrong_type(value, "a string");
            return None;
        };
        Some(literal.value.clone().into_owned())
    }
}

/// Reads one of a closed set of words.
pub(super) fn read_word<W: Word>(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<W> {
    let Value::StringLit(literal) = value else {
        reader.wrong_type(value, &format!("one of {}", W::choices()));
        return None;
    };
    let found = W::from_word(&literal.value);
    if found.is_none() {
        let words = W::WORDS.iter().map(|(word, _)| *word);
        let mut problem = Problem::error(
            span_of(value),
            format!(
                "`{}` is not a {}",
                crate::text::printable(&literal.value),
                W::WHAT
            ),
            format!("write {}", W::choices()),
        );
        if let Some(near) = nearest(&literal.value, words) {
            problem = problem.help(format!("did you mean `{near}`?"));
        }
        reader.problem(problem);
    }
    found
}

/// A path as a settings file names it: absolute once it is read, not yet looked up.
#[derive(Clone, Debug, Eq, PartialEq, schemars::JsonSchema)]
#[schemars(with = "String")]
pub struct SettingPath(pub PathBuf);

impl Readable for SettingPath {
    fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = String::read(value, reader)?;
        reader.path(&text, &span_of(value)).map(Self)
    }
}

/// The same where the seed's settings ask for absolute paths.
#[derive(Clone, Debug, Eq, PartialEq, schemars::JsonSchema)]
#[schemars(with = "String")]
pub struct AbsoluteSettingPath(pub PathBuf);

impl Readable for AbsoluteSettingPath {
    fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = String::read(value, reader)?;
        if !text.is_empty() && !text.starts_with(['/', '~', '$']) {
            reader.problem(
                Problem::error(
                    span_of(value),
                    "the path is not absolute",
                    "must start with `/` or `~/`",
                )
                .help("a relative path here would mean another directory in every project"),
            );
            return None;
        }
        reader.path(&text, &span_of(value)).map(Self)
    }
}

/// A list whose entries each keep their own origin.
pub type List<T> = Vec<Located<T>>;

impl<T: Readable> Readable for List<T> {
    fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let Value::Array(array) = value else {
            reader.wrong_type(value, "an array");
            return None;
        };
        let entries = array.elements.iter().filter_map(|element| {
            let origin = reader.origin(&span_of(element));
            T::read(element, reader).map(|value| Located::new(value, origin))
        });
        Some(entries.collect())
    }
}

/// A map from variable names to values.
pub type Variables = BTreeMap<String, Located<String>>;

impl Readable for Variables {
    fn read(value: &Value<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let Value::Object(object) = value else {
            reader.wrong_type(value, "an object of strings");
            return None;
        };
        let mut out = Self::new();
        reader.each_key(object, &[], |reader, name, value| {
            let origin = reader.origin(&span_of(value));
            let text = String::read(value, reader);
            if name.is_empty() || name.contains(['=', '\0']) {
                reader.problem(Problem::error(
                    span_of(value),
                    "a variable's name cannot be empty or hold `=` or a zero byte",
                    "the value of that name",
                ));
            } else if let Some(text) = text {
                if text.contains('\0') {
                    reader.problem(Problem::error(
                        span_of(value),
                        "a variable cannot hold a zero byte",
                        "remove it",
                    ));
                } else {
                    out.insert(name.to_owned(), Located::new(text, origin));
                }
            }
            true
        });
        Some(out)
    }

    fn overlaid(mut self, stronger: Self) -> Self {
        self.extend(stronger);
        self
    }
}

/// One key's value, or nothing; `null` means nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Key<T>(pub Option<Located<T>>);

impl<T> Default for Key<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Key<T> {
    /// What is written, if anything.
    pub fn written(&self) -> Option<&Located<T>> {
        self.0.as_ref()
    }

    /// Writes a value, as a flag does.
    pub fn set(&mut self, value: T, origin: Origin) {
        self.0 = Some(Located::new(value, origin));
    }
}

impl<T> Key<List<T>> {
    /// Appends to a list, as a repeated flag does.
    pub fn push(&mut self, value: T, origin: Origin) {
        let entry = Located::new(value, origin.clone());
        match &mut self.0 {
            Some(list) => list.value.push(entry),
            None => self.set(vec![entry], origin),
        }
    }
}

/// Where a value stands is not part of its shape.
impl<T: schemars::JsonSchema> schemars::JsonSchema for Located<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}

impl<T: schemars::JsonSchema> schemars::JsonSchema for Key<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Option::<T>::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Option::<T>::json_schema(generator)
    }
}

/// A part of a settings file: a struct of keys and further parts.
pub(super) trait Section: Default {
    /// The names of its keys.
    const KEYS: &'static [&'static str];

    /// Reads one key; `false` if there is no such key.
    #[doc(hidden)]
    fn read_key(&mut self, name: &str, value: &Value<'_>, reader: &mut Reader<'_>) -> bool;

    /// Takes over every key that `stronger` has written; parts are merged key by key.
    fn overlay(&mut self, stronger: Self);
}

/// What a field of a section can be: a key, or a further section.
pub(super) trait Field {
    #[doc(hidden)]
    fn read_field(&mut self, value: &Value<'_>, reader: &mut Reader<'_>);
    #[doc(hidden)]
    fn overlay_field(&mut self, stronger: Self);
}

impl<T: Readable> Field for Key<T> {
    fn read_field(&mut self, value: &Value<'_>, reader: &mut Reader<'_>) {
        if matches!(value, Value::NullKeyword(_)) {
            return;
        }
        let origin = reader.origin(&span_of(value));
        if let Some(read) = T::read(value, reader) {
            self.set(read, origin);
        }
    }

    fn overlay_field(&mut self, stronger: Self) {
        self.0 = match (self.0.take(), stronger.0) {
            (Some(weaker), Some(stronger)) => Some(Located::new(
                weaker.value.overlaid(stronger.value),
                stronger.origin,
            )),
            (weaker, stronger) => stronger.or(weaker),
        };
    }
}

impl<S: Section> Field for S {
    fn read_field(&mut self, value: &Value<'_>, reader: &mut Reader<'_>) {
        match value {
            Value::NullKeyword(_) => {}
            Value::Object(object) => reader.each_key(object, S::KEYS, |reader, name, value| {
                self.read_key(name, value, reader)
            }),
            Value::Array(_) | Value::BooleanLit(_) | Value::NumberLit(_) | Value::StringLit(_) => {
                reader.wrong_type(value, "an object");
            }
        }
    }

    fn overlay_field(&mut self, stronger: Self) {
        self.overlay(stronger);
    }
}

/// Declares a section: one description for the type, its reader, its merge and its schema.
macro_rules! section {
    ($(#[$meta:meta])* $name:ident { $($(#[$fmeta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, schemars::JsonSchema)]
        #[schemars(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$fmeta])* pub $field: $type,)*
        }

        impl $crate::settings::read::Section for $name {
            const KEYS: &'static [&'static str] = &[$(stringify!($field)),*];

            fn read_key(
                &mut self,
                name: &str,
                value: &jsonc_parser::ast::Value<'_>,
                reader: &mut $crate::settings::read::Reader<'_>,
            ) -> bool {
                match name {
                    $(stringify!($field) => {
                        $crate::settings::read::Field::read_field(&mut self.$field, value, reader);
                        true
                    })*
                    _ => false,
                }
            }

            fn overlay(&mut self, stronger: Self) {
                $($crate::settings::read::Field::overlay_field(&mut self.$field, stronger.$field);)*
            }
        }
    };
}
pub(super) use section;
