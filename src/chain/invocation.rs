//! One call to be routed: method, parameter types, arguments, attachments; all borrowed, nothing allocated.

use std::borrow::Cow;

use super::hash;
use super::program::CallKey;

/// One call. Strings are bytes: they come from a wire and need not be UTF-8.
///
/// A `Copy` view of slices the caller keeps alive, so making one per call costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Invocation<'a> {
    /// Method name as called, for example `sayHello` or `$invoke`.
    pub method: &'a [u8],
    /// Names of the parameter types; may be empty when the host does not know them.
    pub types: &'a [&'a [u8]],
    /// Arguments by their text form; `None` is a null argument.
    pub arguments: &'a [Option<&'a [u8]>],
    /// Attachments; of a repeated key the last counts.
    pub attachments: &'a [(&'a [u8], &'a [u8])],
    /// Who can be called, as far as the caller knows: one bit a row, and the id of the list the rows belong to. Nothing
    /// is filtered by it; it is what scripts are told who ask. `None`: all can.
    pub available: Option<(&'a [u64], u64)>,
}

impl<'a> Invocation<'a> {
    /// A call of `method` without arguments and attachments.
    pub fn new(method: &'a [u8]) -> Self {
        Invocation { method, ..Invocation::default() }
    }

    /// The method that is meant: for `$invoke` and `$invokeAsync` with a string as first argument, that argument.
    /// When parameter types are given, the first must be a string type.
    #[inline]
    pub fn effective_method(&self) -> &'a [u8] {
        match self.method.first() {
            Some(b'$') => self.unwrap_generic(),
            _ => self.method,
        }
    }

    #[cold]
    fn unwrap_generic(&self) -> &'a [u8] {
        if !matches!(self.method, b"$invoke" | b"$invokeAsync") {
            return self.method;
        }
        let is_text = self.types.first().is_none_or(|name| {
            matches!(*name, b"java.lang.String" | b"Ljava/lang/String;" | b"String" | b"string" | b"str")
        });
        match self.arguments.first() {
            Some(Some(name)) if is_text && !name.is_empty() => name,
            _ => self.method,
        }
    }

    /// An attachment; of a repeated key the last one.
    #[inline]
    pub fn attachment(&self, key: &[u8]) -> Option<&'a [u8]> {
        self.attachments.iter().rev().find(|(name, _)| hash::same(name, key)).map(|(_, value)| *value)
    }

    /// The value of a property; `None` when absent.
    #[inline]
    pub fn value<'b>(&self, key: &'b CallKey) -> Option<&'b [u8]>
    where
        'a: 'b,
    {
        match key {
            CallKey::Method => Some(self.effective_method()),
            CallKey::RawMethod => Some(self.method),
            CallKey::Argument { index, null } => {
                let argument = self.arguments.get(usize::try_from(*index).ok()?)?;
                Some(argument.unwrap_or(null.as_bytes()))
            }
            CallKey::Attachment(name) => self.attachment(name.as_bytes()),
        }
    }
}

/// A value as a value test sees it: bytes that are not UTF-8 become replacement characters.
#[inline]
pub(crate) fn as_text(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_calls_name_the_method_they_mean() {
        type Case<'a> = (&'a [u8], &'a [&'a [u8]], &'a [Option<&'a [u8]>], &'a [u8]);
        let table: &[Case<'_>] = &[
            (b"hello", &[], &[Some(b"x")], b"hello"),
            (b"$invoke", &[], &[Some(b"hello")], b"hello"),
            (b"$invokeAsync", &[b"java.lang.String"], &[Some(b"hello")], b"hello"),
            (b"$invoke", &[b"int"], &[Some(b"1")], b"$invoke"),
            (b"$invoke", &[], &[None], b"$invoke"),
            (b"$invoke", &[], &[], b"$invoke"),
            (b"$echo", &[], &[Some(b"hello")], b"$echo"),
        ];
        for (method, types, arguments, expect) in table {
            let call = Invocation { method, types, arguments, attachments: &[], available: None };
            assert_eq!(call.effective_method(), *expect);
            assert_eq!(call.value(&CallKey::RawMethod), Some(*method));
        }
    }

    #[test]
    fn values_follow_their_key() {
        let call = Invocation {
            method: b"m",
            types: &[],
            arguments: &[Some(b"a"), None],
            attachments: &[(b"k", b"1"), (b"k", b"2"), (b"e", b"")],
            available: None,
        };
        let argument = |index| CallKey::Argument { index, null: "null".into() };
        let attachment = |name: &str| CallKey::Attachment(name.into());
        let table: [(CallKey, Option<&[u8]>); 6] = [
            (argument(0), Some(b"a")),
            (argument(1), Some(b"null")),
            (argument(2), None),
            (attachment("k"), Some(b"2")),
            (attachment("e"), Some(b"")),
            (attachment("x"), None),
        ];
        for (key, expect) in table {
            assert_eq!(call.value(&key), expect, "{key}");
        }
    }
}
