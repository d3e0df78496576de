"""Compiles Java's regular expressions, so that patterns and replacements in configs mean what they mean in Connect.

The ``regex`` package does the matching. This package translates the syntax where ``regex`` differs from Java 17.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from sluiceway.errors import MissingToolError
from sluiceway.java.regex.cursor import RegexError
from sluiceway.java.regex.replacement import expand

if TYPE_CHECKING:
    import regex

__all__ = ["JavaRegex", "RegexError", "compile_java"]


class JavaRegex(NamedTuple):
    """A compiled Java pattern and the numbers of its named groups."""

    pattern: regex.Pattern[str]
    names: dict[str, int]

    def matches(self, text: str) -> bool:
        """Return True if the whole text matches (``Matcher.matches``)."""
        return self.pattern.fullmatch(text) is not None

    def replace_first(self, text: str, replacement: str) -> str:
        """Replace the first match anywhere in the text (``Matcher.replaceFirst``); return the text itself if none matches.

        Raises ValueError or IndexError for a replacement that Java refuses.
        """
        match = self.pattern.search(text)
        if match is None:
            return text
        return text[: match.start()] + expand(replacement, match, self.names) + text[match.end() :]


@functools.lru_cache(maxsize=256)
def compile_java(pattern: str) -> JavaRegex:
    """Compile a Java pattern.

    Raises RegexError for one that Java refuses or that cannot be translated, MissingToolError without the package ``regex``.
    """
    try:  # imported here, so that executors without the package run connectors that use no patterns
        import regex

        from sluiceway.java.regex.translation import translate
    except ImportError as error:
        raise MissingToolError(
            "Regular expressions need the Python package regex, on executors too. Install it: pip install regex"
        ) from error
    translation = translate(pattern)
    try:
        return JavaRegex(regex.compile(translation.pattern, regex.V1), translation.names)
    except (regex.error, OverflowError, RecursionError) as error:
        raise RegexError(str(error), pattern) from error
