"""Java's regular expressions: translated to Python's ``re``, so that patterns and replacements in configs mean the same."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from sluiceway.java.regex.parser import translate
from sluiceway.java.regex.replacement import expand
from sluiceway.java.regex.text import RegexError

__all__ = ["JavaRegex", "RegexError", "compile_java"]


class JavaRegex(NamedTuple):
    """A compiled Java pattern, the numbers of its named groups, and how many groups it has."""

    pattern: re.Pattern[str]
    names: dict[str, int]
    groups: int

    def matches(self, text: str) -> bool:
        """Whether the whole text matches (``Matcher.matches``)."""
        return self.pattern.fullmatch(text) is not None

    def replace_first(self, text: str, replacement: str) -> str:
        """Replace the first match (``Matcher.replaceFirst``), wherever it is; the text itself if there is none.

        Raises ValueError or IndexError for a replacement that Java would refuse.
        """
        found = self.pattern.search(text)
        if found is None:
            return text
        return text[: found.start()] + expand(replacement, found, self.names, self.groups) + text[found.end() :]


@functools.lru_cache(maxsize=256)
def compile_java(pattern: str) -> JavaRegex:
    """Compile a Java pattern. Raises RegexError if it is none, or has a part that cannot be said in Python."""
    translated = translate(pattern)
    try:
        return JavaRegex(re.compile(translated.pattern), translated.names, translated.groups)
    except (re.error, OverflowError, RecursionError) as error:
        raise RegexError(str(error), pattern) from error
