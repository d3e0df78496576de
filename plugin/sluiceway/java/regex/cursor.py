"""Reads the text of a Java pattern from left to right, and reports where it is wrong as Java does."""

from __future__ import annotations


class RegexError(ValueError):
    """A text that is not a Java regular expression (``PatternSyntaxException``), or one that cannot be translated."""

    java_class = "java.util.regex.PatternSyntaxException"

    def __init__(self, description: str, pattern: str, index: int | None = None) -> None:
        super().__init__(description, pattern, index)
        self._description, self._pattern, self._index = description, pattern, index

    def __str__(self) -> str:
        """Return the message of ``PatternSyntaxException.getMessage``, with a caret below the wrong character."""
        if self._index is None or self._index < 0:
            return f"{self._description}\n{self._pattern}"
        margin = "".join("\t" if character == "\t" else " " for character in self._pattern[: self._index])
        pointer = f"\n{margin}^" if self._index < len(self._pattern) else ""
        return f"{self._description} near index {self._index}\n{self._pattern}{pointer}"


class Cursor:
    """A position in the text of a pattern."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @property
    def more(self) -> bool:
        """True before the end of the text."""
        return self.at < len(self.text)

    def peek(self) -> str:
        """Return the next character, or an empty text at the end."""
        return self.text[self.at : self.at + 1]

    def next(self) -> str:
        """Return the next character and move past it. Raises RegexError at the end."""
        if not self.more:
            raise self.error("Unexpected end")
        self.at += 1
        return self.text[self.at - 1]

    def take(self, text: str) -> bool:
        """Move past ``text`` if it comes next; return True if it does."""
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def take_while(self, characters: str, most: int | None = None) -> str:
        """Return the longest text of these characters that comes next, ``most`` characters at most, and move past it."""
        start = self.at
        while self.more and self.peek() in characters and (most is None or self.at < start + most):
            self.at += 1
        return self.text[start : self.at]

    def until(self, end: str) -> str | None:
        """Return the text up to ``end`` and move past ``end``; None if ``end`` does not come."""
        found = self.text.find(end, self.at)
        if found < 0:
            return None
        start, self.at = self.at, found + len(end)
        return self.text[start:found]

    def quotation(self) -> str:
        r"""Return the text up to ``\E``, or up to the end, and move past it."""
        quoted = self.until("\\E")
        if quoted is None:
            quoted, self.at = self.text[self.at :], len(self.text)
        return quoted

    def skip_comment(self) -> bool:
        """Move past a blank or a comment of the flag x; return True if there was one."""
        if self.more and self.peek() in " \t\n\x0b\f\r":
            self.at += 1
            return True
        if self.take("#"):
            while self.more and self.peek() not in "\n\r\x85\u2028\u2029":
                self.at += 1
            return True
        return False

    def error(self, description: str, index: int | None = None) -> RegexError:
        """Return the error at an index, by default at the character read last."""
        return RegexError(description, self.text, self.at - 1 if index is None else index)
