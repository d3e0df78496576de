"""Splits SQL statements of MariaDB and MySQL into tokens. No I/O."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


class Kind(enum.Enum):
    """Kinds of tokens. NAME is a quoted identifier, WORD one without quotes or a keyword."""

    WORD = enum.auto()
    NAME = enum.auto()
    STRING = enum.auto()
    NUMBER = enum.auto()
    BITS = enum.auto()
    SYMBOL = enum.auto()
    END = enum.auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its text in the statement, the keyword in upper case, and where it starts and ends."""

    kind: Kind
    text: str
    upper: str
    start: int
    end: int

    @property
    def name(self) -> str:
        """The identifier without quotes."""
        if self.kind is Kind.WORD:
            return self.text
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)


# How executable comments begin. MySQL reads six digits as a version only if a blank follows; MariaDB has a form of its own.
_MYSQL_OPENS = r"/\*!(?:\d{6}(?=\s)|\d{5})?"
_MARIADB_OPENS = r"/\*M?!(?:\d{5,6})?"


def _token_pattern(opens: str) -> re.Pattern[str]:
    return re.compile(
        rf"""
        (?P<open>{opens})
      | (?P<space>\s+|--(?=[\s]|$)[^\n]*|\#[^\n]*|/\*(?!!)[\s\S]*?\*/)
      | (?P<close>\*/)
      | (?P<bits>[bB]'[01]*'|[xX]'[0-9A-Fa-f]*'|0b[01]+\b|0x[0-9A-Fa-f]+\b)
      | (?P<string>'(?:[^'\\]|\\[\s\S]|'')*'|"(?:[^"\\]|\\[\s\S]|"")*")
      | (?P<name>`(?:[^`]|``)*`)
      | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w$]))
      | (?P<word>[\w$\u0080-\uffff@]+)
      | (?P<symbol>.)
        """,
        re.VERBOSE,
    )


_MYSQL, _MARIADB = _token_pattern(_MYSQL_OPENS), _token_pattern(_MARIADB_OPENS)

_KINDS = {
    "bits": Kind.BITS,
    "string": Kind.STRING,
    "name": Kind.NAME,
    "number": Kind.NUMBER,
    "word": Kind.WORD,
    "symbol": Kind.SYMBOL,
}


def tokens(sql: str, *, mariadb: bool) -> list[Token]:
    """Return the tokens of a statement in the log of a server.

    Executable comments (``/*! ... */``, ``/*!50100 ... */``, and MariaDB's ``/*M! ... */``) count as text, others as blanks.
    Their versions do not matter: in the statement that a server logs, a comment that it did not execute has no exclamation mark.
    """
    return [*_tokens(sql, mariadb=mariadb), Token(Kind.END, "", "", len(sql), len(sql))]


def _tokens(sql: str, *, mariadb: bool) -> Iterator[Token]:
    for match in (_MARIADB if mariadb else _MYSQL).finditer(sql):
        kind = _KINDS.get(match.lastgroup or "")
        if kind is not None:
            text = match.group()
            yield Token(kind, text, text.upper() if kind is Kind.WORD else text, match.start(), match.end())


def named_tables(sql: str, database: str, *, mariadb: bool) -> Iterator[tuple[str, str]]:
    """Yield the database and the table that each name of a statement may mean.

    With the SQL mode ANSI_QUOTES, a text in double quotes is a name.
    """
    found = tokens(sql, mariadb=mariadb)
    names = [each for each in found if each.kind in (Kind.NAME, Kind.WORD) or each.text == "." or each.text.startswith('"')]
    for index, token in enumerate(names):
        qualified = index > 1 and names[index - 1].text == "."
        if token.text != ".":
            yield names[index - 2].name if qualified else database, token.name


class NotUnderstoodError(Exception):
    """The parser does not understand a statement."""


class TokenReader:
    """Reads tokens one after the other."""

    def __init__(self, sql: str, *, mariadb: bool) -> None:
        self.sql = sql
        self.mariadb = mariadb
        self._tokens = tokens(sql, mariadb=mariadb)
        self._at = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    def peek(self, ahead: int = 1) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def take(self) -> Token:
        token = self.next
        if token.kind is not Kind.END:
            self._at += 1
        return token

    @property
    def at_end(self) -> bool:
        return self.next.kind is Kind.END or (self.next.text == ";" and self.peek().kind is Kind.END)

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these keywords or symbols."""
        return all(self.peek(index).upper == word and self.peek(index).kind is not Kind.NAME for index, word in enumerate(words))

    def at_any(self, words: Sequence[str] | frozenset[str]) -> bool:
        """Whether the next token is one of these keywords."""
        return self.next.kind is Kind.WORD and self.next.upper in words

    def skip(self, *words: str) -> bool:
        """Skip these keywords or symbols if they are next."""
        if not self.at(*words):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.skip(*words):
            raise NotUnderstoodError(f"{' '.join(words)} expected at {self.next.text!r}")

    def expect_end(self) -> None:
        if not self.at_end:
            raise NotUnderstoodError(f"end expected at {self.next.text!r}")

    def identifier(self) -> str:
        """Read a name."""
        token = self.take()
        if token.kind not in (Kind.WORD, Kind.NAME, Kind.STRING):
            raise NotUnderstoodError(f"name expected at {token.text!r}")
        return token.name if token.kind is not Kind.STRING else token.text[1:-1]

    def qualified(self, database: str) -> tuple[str, str]:
        """Read ``database.table`` or ``table``, and return both names."""
        first = self.identifier()
        return (first, self.identifier()) if self.skip(".") else (database, first)

    def parenthesized(self) -> str:
        """Skip ``( ... )`` with everything inside, and return its text with the parentheses."""
        start = self.next.start
        self.expect("(")
        depth = 1
        while depth:
            token = self.take()
            if token.kind is Kind.END:
                raise NotUnderstoodError("a parenthesis is not closed")
            if token.kind is Kind.SYMBOL:
                depth += {"(": 1, ")": -1}.get(token.text, 0)
        return self.sql[start : self.peek(-1).end]

    def skip_rest(self) -> None:
        """Skip to the end of the statement."""
        while not self.at_end:
            self.take()

    @property
    def at_item_end(self) -> bool:
        """Whether a comma, a closing parenthesis, or the end is next."""
        return self.at_end or (self.next.kind is Kind.SYMBOL and self.next.text in ",)")

    def skip_item(self) -> None:
        """Skip to the next comma or closing parenthesis of this level, or to the end."""
        while not self.at_item_end:
            self.skip_part()

    def skip_part(self) -> None:
        """Skip a token, or what is in parentheses."""
        if self.at("("):
            self.parenthesized()
        else:
            self.take()
