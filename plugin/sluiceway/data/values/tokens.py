"""Splits the text of a list or map into tokens: single delimiters and the text between them. No I/O."""

from __future__ import annotations

import re

from sluiceway.java.blanks import is_blank, trim

# A backslash escapes the next character.
_TOKEN = re.compile(r'[:,\[\]{}"]|(?:\\[:,\[\]{}"\\]|\\(?![:,\[\]{}"\\])|[^\\:,\[\]{}"])+', re.DOTALL)


class Tokens:
    """A cursor over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self._tokens = _TOKEN.findall(text)

    def more(self) -> bool:
        return self.position < len(self._tokens)

    def take(self) -> str:
        """Return the next token and move past it; an empty text at the end."""
        if not self.more():
            return ""
        self.position += 1
        return str(self._tokens[self.position - 1])

    def take_if(self, wanted: str) -> bool:
        """Move past the next token if it is ``wanted``, ignoring blanks around it. Always skips blank tokens before another."""
        while self.position + 1 < len(self._tokens) and is_blank(self._tokens[self.position]):
            self.position += 1
        if self.more() and trim(self._tokens[self.position]) == wanted:
            self.position += 1
            return True
        return False

    def join(self, count: int) -> str | None:
        """Return the next ``count`` tokens as one text without moving; None if there are fewer."""
        tokens = self._tokens[self.position : self.position + count]
        return "".join(tokens) if len(tokens) == count else None

    @property
    def previous(self) -> str:
        return str(self._tokens[self.position - 1]) if self.position else ""
