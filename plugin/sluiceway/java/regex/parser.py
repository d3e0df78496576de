"""Reads a Java pattern and writes it for Python's ``re``.

Flags are resolved on the way (cases, ``.``, anchors and classes are written out), so what is written needs no flags. All
capturing groups are named ``g<number>``, which leaves room for helper groups without renumbering references.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from sluiceway.java.regex import character_sets as sets
from sluiceway.java.regex.classes import cased, read_class, read_escape
from sluiceway.java.regex.text import Cursor, Flags

_ATOMIC = sys.version_info >= (3, 11)
_END = r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)(?<!\r(?=\n))"
_LINE_START = r"(?:\A|(?<=[\n\r\x85\u2028\u2029])(?<!\r(?=\n))(?!\Z))"
_LINE_END = r"(?=[\n\r\x85\u2028\u2029]|\Z)(?<!\r(?=\n))"
_LINE_BREAK = r"(?:\r\n|[\n\x0b\f\r\x85\u2028\u2029])"
_QUANTIFIERS = "*+?{"


class Translated(NamedTuple):
    """A pattern for Python, the numbers of its named groups, and how many groups it has in Java's eyes."""

    pattern: str
    names: dict[str, int]
    groups: int


def translate(pattern: str) -> Translated:
    """Return a Java pattern as Python's ``re`` takes it. Raises RegexError."""
    parser = _Parser(pattern)
    return Translated(parser.whole(), parser.names, parser.groups)


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._cursor = Cursor(pattern)
        self.groups = 0
        self._helpers = 0
        self.names: dict[str, int] = {}

    def whole(self) -> str:
        written = self._alternatives(Flags())
        if self._cursor.more:
            raise self._cursor.error("Unmatched closing ')'", self._cursor.at - 1)
        return "|".join(written)

    # --- sequences and groups

    def _alternatives(self, flags: Flags) -> list[str]:
        """Read up to the closing parenthesis (which is left) or the end."""
        branches: list[list[str]] = [[]]
        while self._cursor.more and self._cursor.peek() != ")":
            if self._cursor.skip_comment(flags):
                continue
            if self._cursor.take("|"):
                branches.append([])
            elif (changed := self._inline_flags(flags)) is not None:
                flags = changed
            else:
                branches[-1].append(self._quantified(flags))
        return ["".join(branch) for branch in branches]

    def _inline_flags(self, flags: Flags) -> Flags | None:
        """Read ``(?i)`` and the like, which holds up to the end of the group around it."""
        start = self._cursor.at
        if self._cursor.take("(?"):
            changed = self._flag_letters(flags)
            if changed is not None and self._cursor.take(")"):
                return changed
        self._cursor.at = start
        return None

    def _flag_letters(self, flags: Flags) -> Flags | None:
        on = True
        while self._cursor.more and (self._cursor.peek() in "idmsuxU-"):
            letter = self._cursor.next()
            if letter == "-":
                on = False
                continue
            flags = replace(flags, **{letter: on})
            if letter == "U":
                flags = replace(flags, u=on)
        return flags if self._cursor.more and self._cursor.peek() in ":)" else None

    def _group(self, flags: Flags) -> str:
        """Read what follows an opening parenthesis."""
        start = self._cursor.at - 1
        if not self._cursor.take("?"):
            self.groups += 1
            return self._rest(f"(?P<g{self.groups}>", flags, start)
        for opening in (":", "=", "!"):
            if self._cursor.take(opening):
                return self._rest(f"(?{opening}", flags, start)
        if self._cursor.take(">"):
            return self._atomic(self._rest("(?:", flags, start))
        for opening in ("<=", "<!"):
            if self._cursor.take(opening):
                return self._look_behind(opening, flags, start)
        if self._cursor.take("<"):
            name = self._name(">")
            if name in self.names:
                raise self._cursor.error(f"Named capturing group <{name}> is already defined")
            self.groups += 1
            self.names[name] = self.groups
            return self._rest(f"(?P<g{self.groups}>", flags, start)
        changed = self._flag_letters(flags)
        if changed is not None and self._cursor.take(":"):
            return self._rest("(?:", changed, start)
        raise self._cursor.error("Unknown inline modifier", self._cursor.at)

    def _rest(self, opening: str, flags: Flags, start: int) -> str:
        return f"{opening}{'|'.join(self._inside(flags, start))})"

    def _inside(self, flags: Flags, _start: int) -> list[str]:
        branches = self._alternatives(flags)
        if not self._cursor.take(")"):
            raise self._cursor.error("Unclosed group", len(self._cursor.text))
        return branches

    def _look_behind(self, opening: str, flags: Flags, start: int) -> str:
        """Each branch for itself: Python wants all of them to be of one length."""
        branches = [f"(?{opening}{branch})" for branch in self._inside(flags, start)]
        return f"(?:{'|'.join(branches)})" if opening == "<=" else "".join(branches)

    def _atomic(self, part: str) -> str:
        if _ATOMIC:
            return f"(?>{part})"
        self._helpers += 1
        return f"(?=(?P<a{self._helpers}>{part}))(?P=a{self._helpers})"

    # --- one element and how often

    def _quantified(self, flags: Flags) -> str:
        part = self._element(flags)
        while self._cursor.skip_comment(flags):
            pass
        quantifier = self._quantifier() if self._cursor.more else None
        if quantifier is None:
            return part
        return self._how_greedy(f"(?:{part}){quantifier}")

    def _quantifier(self) -> str | None:
        if self._cursor.peek() in "*+?":
            return self._cursor.next()
        if self._cursor.peek() != "{":
            return None
        start = self._cursor.at
        self._cursor.at += 1
        low = self._cursor.digits()
        if not low:
            raise self._cursor.error("Illegal repetition", start + 1)
        high = low
        if self._cursor.take(","):
            high = self._cursor.digits()
        if not self._cursor.take("}"):
            raise self._cursor.error("Unclosed counted closure", self._cursor.at)
        if high and int(high) < int(low):
            raise self._cursor.error("Illegal repetition range")
        return f"{{{low}}}" if high == low else f"{{{low},{high}}}"

    def _element(self, flags: Flags) -> str:
        if self._cursor.peek() == "{":  # how often nothing comes
            return ""
        character = self._cursor.next()
        if character == "(":
            return self._group(flags)
        if character == "[":
            return sets.python_class(read_class(self._cursor, flags))
        if character == ".":
            line_ends = sets.of("\n") if flags.d else sets.LINE_ENDS
            return sets.python_class(sets.ALL if flags.s else sets.complement(line_ends))
        if character == "^":
            return _LINE_START if flags.m else r"\A"
        if character == "$":
            return _LINE_END if flags.m else _END
        if character == "\\":
            return self._escape(flags)
        if character in "*+?":
            raise self._cursor.error(f"Dangling meta character '{character}'", self._cursor.at - 1)
        return self._literal(character, flags)

    def _literal(self, character: str, flags: Flags) -> str:
        return sets.python_class(cased(sets.of(character), flags))

    def _escape(self, flags: Flags) -> str:
        """Read what follows a backslash outside of classes."""
        if not self._cursor.more:
            raise self._cursor.error("Unexpected internal error", self._cursor.at)
        character = self._cursor.peek()
        if character in "123456789":
            return self._back_reference(flags)
        simple: dict[str, Callable[[], str]] = {
            "A": lambda: r"\A",
            "G": lambda: r"\A",
            "z": lambda: r"\Z",
            "Z": lambda: _END,
            "R": lambda: self._atomic(_LINE_BREAK),
            "b": lambda: self._boundary(flags, "b"),
            "B": lambda: self._boundary(flags, "B"),
            "k": lambda: self._named_reference(flags),
            "Q": lambda: self._quotation(flags),
            "X": lambda: r"(?:\r\n|[\s\S])",
        }
        if character in simple:
            self._cursor.at += 1
            return simple[character]()
        return sets.python_class(read_escape(self._cursor, flags))

    def _boundary(self, flags: Flags, kind: str) -> str:
        word = sets.python_class(sets.unicode_word() if flags.U else sets.boundary_word())
        inside = f"(?<={word})(?={word})|(?<!{word})(?!{word})"
        return f"(?:{inside})" if kind == "B" else f"(?!{inside})"

    def _quotation(self, flags: Flags) -> str:
        quoted = [self._literal(character, flags) for character in self._cursor.quotation()]
        if quoted and self._cursor.more and self._cursor.peek() in _QUANTIFIERS:  # it binds to the last character only
            quoted[-1] = self._how_greedy(f"{quoted[-1]}{self._quantifier()}")
        return "".join(quoted)

    def _how_greedy(self, repeated: str) -> str:
        if self._cursor.take("+"):
            return self._atomic(repeated)
        return f"{repeated}{'?' if self._cursor.take('?') else ''}"

    def _back_reference(self, flags: Flags) -> str:
        number = int(self._cursor.next())
        while self._cursor.more and "0" <= self._cursor.peek() <= "9" and number * 10 + int(self._cursor.peek()) <= self.groups:
            number = number * 10 + int(self._cursor.next())
        return self._reference(number, flags)

    def _named_reference(self, flags: Flags) -> str:
        if not self._cursor.take("<"):
            raise self._cursor.error("\\k is not followed by '<' for named capturing group", self._cursor.at)
        name = self._name(">")
        if name not in self.names:
            raise self._cursor.error(f"named capturing group <{name}> does not exist")
        return self._reference(self.names[name], flags)

    def _reference(self, number: int, flags: Flags) -> str:
        if number > self.groups:
            return "(?!)"  # Java: a group that is not there never matches
        reference = f"(?P=g{number})"
        return f"(?{'i' if flags.u else 'ia'}:{reference})" if flags.i else reference

    def _name(self, end: str) -> str:
        start = self._cursor.at
        while self._cursor.more and self._cursor.peek().isascii() and self._cursor.peek().isalnum():
            self._cursor.at += 1
        name = self._cursor.text[start : self._cursor.at]
        if not name or not name[0].isalpha():
            raise self._cursor.error("capturing group name does not start with a Latin letter", start)
        if not self._cursor.take(end):
            raise self._cursor.error(f"named capturing group is missing trailing '{end}'", self._cursor.at)
        return name
