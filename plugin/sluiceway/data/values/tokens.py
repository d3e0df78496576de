"""The tokens of a text that may be a list or a map: delimiters one by one, and what stands between them. Pure."""

from __future__ import annotations

import re

from sluiceway.java.blanks import is_blank, trim

# A backslash takes the meaning from whatever follows it.
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
        """Return the next token, nothing at the end."""
        if not self.more():
            return ""
        self.position += 1
        return str(self._tokens[self.position - 1])

    def take_if(self, wanted: str) -> bool:
        """Take the next token if it is this one, blanks around it apart. Blank tokens before others are passed over anyhow."""
        while self.position + 1 < len(self._tokens) and is_blank(self._tokens[self.position]):
            self.position += 1
        if self.more() and trim(self._tokens[self.position]) == wanted:
            self.position += 1
            return True
        return False

    def join(self, count: int) -> str | None:
        """Return the next tokens as one text without taking them; None if there are fewer."""
        tokens = self._tokens[self.position : self.position + count]
        return "".join(tokens) if len(tokens) == count else None

    @property
    def previous(self) -> str:
        return str(self._tokens[self.position - 1]) if self.position else ""
