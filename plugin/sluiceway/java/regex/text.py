"""The text of a pattern while it is read, the flags that hold at a place in it, and the error that says what is wrong."""

from __future__ import annotations

from dataclasses import dataclass


class RegexError(ValueError):
    """A text is not a Java regular expression, or not one that can be had here (``PatternSyntaxException``)."""

    java_class = "java.util.regex.PatternSyntaxException"

    def __init__(self, why: str, pattern: str, at: int | None = None) -> None:
        super().__init__(why, pattern, at)
        self._why, self._pattern, self._at = why, pattern, at

    def __str__(self) -> str:
        if self._at is None or self._at < 0:
            return f"{self._why}\n{self._pattern}"
        margin = "".join("\t" if character == "\t" else " " for character in self._pattern[: self._at])
        pointer = f"\n{margin}^" if self._at < len(self._pattern) else ""
        return f"{self._why} near index {self._at}\n{self._pattern}{pointer}"


@dataclass(frozen=True)
class Flags:
    """The embedded flags, by Java's letters."""

    i: bool = False
    d: bool = False
    m: bool = False
    s: bool = False
    u: bool = False
    x: bool = False
    U: bool = False


class Cursor:
    """A place in a pattern's text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @property
    def more(self) -> bool:
        return self.at < len(self.text)

    def peek(self) -> str:
        return self.text[self.at]

    def next(self) -> str:
        if not self.more:
            raise self.error("Unexpected end")
        self.at += 1
        return self.text[self.at - 1]

    def take(self, text: str) -> bool:
        """Go past ``text`` if it is here."""
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def until(self, end: str) -> str | None:
        """Return the text up to ``end`` and go past that; None if it is nowhere."""
        found = self.text.find(end, self.at)
        if found < 0:
            return None
        start, self.at = self.at, found + len(end)
        return self.text[start:found]

    def quotation(self) -> str:
        """Return the text up to ``\\E``, or all the rest."""
        quoted = self.until("\\E")
        if quoted is None:
            quoted, self.at = self.text[self.at :], len(self.text)
        return quoted

    def digits(self, most: int | None = None) -> str:
        """Return the decimal digits that come next."""
        start = self.at
        while self.more and "0" <= self.peek() <= "9" and (most is None or self.at < start + most):
            self.at += 1
        return self.text[start : self.at]

    def skip_comment(self, flags: Flags) -> bool:
        """Under the flag x, skip a blank or a comment."""
        if not flags.x or not self.more:
            return False
        if self.peek() in " \t\n\x0b\f\r":
            self.at += 1
            return True
        if self.peek() == "#":
            while self.more and self.peek() not in "\n\r\x85\u2028\u2029":
                self.at += 1
            return True
        return False

    def error(self, why: str, at: int | None = None) -> RegexError:
        """Return the error at a position: where not said, that of the character read last."""
        return RegexError(why, self.text, self.at - 1 if at is None else at)
