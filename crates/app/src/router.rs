//! Handlers and middleware of the names below a suffix.

use crate::app::App;
use crate::handler::{AsyncHandler, Handler};
use crate::into_reply::IntoReply;
use std::sync::Arc;
use zonda_engine::code::{Source, Stage};

/// The names below a suffix, which patterns leave out: `www`, `*`, `:user/TXT`; `@` is the suffix
/// itself. [`App::route`] makes one. Each method does what the one of [`App`] does that has its
/// name.
#[derive(Debug)]
#[must_use = "the function of `App::route` returns the router"]
pub struct Router {
    app: App,
    suffix: String,
}

impl Router {
    /// Makes a router of a suffix that patterns can stand in front of.
    pub(crate) fn new(app: App, suffix: &str) -> Self {
        Self { app, suffix: suffix.to_owned() }
    }

    /// Returns the app, with all that was added.
    pub(crate) fn into_app(self) -> App {
        self.app
    }

    /// Answers names with a function that runs in the workers.
    pub fn handle<M: 'static, H>(self, pattern: &str, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoReply,
    {
        self.with(pattern, |app, pattern| app.handle(pattern, handler))
    }

    /// Answers names with a function that may wait.
    pub fn handle_async<M: 'static, H>(self, pattern: &str, handler: H) -> Self
    where
        H: AsyncHandler<M>,
        H::Future: Send + 'static,
        H::Output: IntoReply,
    {
        self.with(pattern, |app, pattern| app.handle_async(pattern, handler))
    }

    /// Answers a name and all names below it from a [`Source`].
    pub fn source(self, name: &str, source: impl Source + 'static) -> Self {
        self.with(name, |app, name| app.source(name, source))
    }

    /// Passes queries for the suffix and all names below it through a function that runs in the
    /// workers.
    pub fn middleware<M: 'static, H>(self, function: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoReply,
    {
        let all = self.all();
        let app = self.app.guard_by(&all, function);
        Self { app, ..self }
    }

    /// Passes queries for the names of a pattern through a function that runs in the workers.
    pub fn middleware_for<M: 'static, H>(self, pattern: &str, function: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoReply,
    {
        self.with(pattern, |app, pattern| app.middleware_for(pattern, function))
    }

    /// Passes queries for the suffix and all names below it, and their replies, through a
    /// [`Stage`].
    pub fn stage(self, stage: impl Stage + 'static) -> Self {
        let all = self.all();
        let app = self.app.guard(&all, Arc::new(stage));
        Self { app, ..self }
    }

    /// Passes queries for the names of a pattern, and their replies, through a [`Stage`].
    pub fn stage_for(self, pattern: &str, stage: impl Stage + 'static) -> Self {
        self.with(pattern, |app, pattern| app.stage_for(pattern, stage))
    }

    /// Passes queries for the suffix and all names below it through a function that may wait.
    pub fn middleware_async<M: 'static, H>(self, function: H) -> Self
    where
        H: AsyncHandler<M>,
        H::Future: Send + 'static,
        H::Output: IntoReply,
    {
        let all = self.all();
        let app = self.app.guard_async(&all, function);
        Self { app, ..self }
    }

    /// Passes queries for the names of a pattern through a function that may wait.
    pub fn middleware_for_async<M: 'static, H>(self, pattern: &str, function: H) -> Self
    where
        H: AsyncHandler<M>,
        H::Future: Send + 'static,
        H::Output: IntoReply,
    {
        self.with(pattern, |app, pattern| app.middleware_for_async(pattern, function))
    }

    /// Adds handlers and middleware for the names below a longer suffix.
    pub fn route(self, suffix: &str, add: impl FnOnce(Self) -> Self) -> Self {
        self.with(suffix, |app, suffix| app.route(suffix, add))
    }

    /// Changes the app by what is below the suffix.
    fn with(self, pattern: &str, change: impl FnOnce(App, &str) -> App) -> Self {
        let Self { app, suffix } = self;
        let app = change(app, &below(pattern, &suffix));
        Self { app, suffix }
    }

    /// The patterns of the suffix and of all names below it.
    fn all(&self) -> [String; 2] {
        ["@", "*"].map(|pattern| below(pattern, &self.suffix))
    }
}

/// Returns a pattern below a suffix: `www` and `www/A` become `www.eu.example` and
/// `www.eu.example/A`; `@` is the suffix itself.
fn below(pattern: &str, suffix: &str) -> String {
    let mut is_escaped = false;
    let types = pattern.bytes().position(|octet| {
        let is_first = octet == b'/' && !is_escaped;
        is_escaped = octet == b'\\' && !is_escaped;
        is_first
    });
    let (names, types) = pattern.split_at(types.unwrap_or(pattern.len()));
    match names {
        "@" => format!("{suffix}{types}"),
        _ => format!("{}.{suffix}{types}", without_final_dot(names)),
    }
}

/// Returns names without their final dot, unless that is an octet of a label.
fn without_final_dot(names: &str) -> &str {
    let Some(shorter) = names.strip_suffix('.') else { return names };
    let escapes = shorter.bytes().rev().take_while(|octet| *octet == b'\\').count();
    if escapes % 2 == 0 { shorter } else { names }
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn a_pattern_stands_in_front_of_the_suffix_and_its_types_behind() {
        for (pattern, expected) in [
            ("www", "www.eu.example"),
            ("www.", "www.eu.example"),
            ("@", "eu.example"),
            ("@/TXT", "eu.example/TXT"),
            ("*.:user/A|AAAA", "*.:user.eu.example/A|AAAA"),
            (r"a\/b/TXT", r"a\/b.eu.example/TXT"),
            (r"a\.", r"a\..eu.example"),
            (r"a\\.", r"a\\.eu.example"),
        ] {
            assert_eq!(below(pattern, "eu.example"), expected, "{pattern}");
        }
    }
}
