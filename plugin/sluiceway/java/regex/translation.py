r"""Translates a Java pattern to one of the ``regex`` package, version 1.

Groups, quantifiers and alternatives are alike in both and are copied. Flags are applied to the parts they affect, because
``regex`` gives ``.``, ``$``, ``\b``, ``\w`` and the flag i another meaning. Syntax that only ``regex`` has is refused, or
escaped where Java reads it literally. A look-behind may match texts of any length, where Java wants a maximum.
"""

from __future__ import annotations

import string
from typing import NamedTuple

from sluiceway.java.regex import properties
from sluiceway.java.regex.classes import literal, read_class, read_escape
from sluiceway.java.regex.cursor import Cursor, RegexError
from sluiceway.java.regex.properties import Flags

_LINE_ENDS = r"\n\r\x85\u2028\u2029"
_BEFORE_FINAL_LINE_END = rf"(?=(?:\r\n|[{_LINE_ENDS}])?\Z)(?<!\r(?=\n))"
_LINE_START = rf"(?:\A|(?<=[{_LINE_ENDS}])(?<!\r(?=\n))(?!\Z))"
_LINE_END = rf"(?=[{_LINE_ENDS}]|\Z)(?<!\r(?=\n))"
_ANCHORS = {
    "A": r"\A",
    "G": r"\A",
    "z": r"\Z",
    "Z": _BEFORE_FINAL_LINE_END,
    "R": r"(?:\r\n|[\n-\r\x85\u2028\u2029])",
    "X": r"\X",
}


class Translation(NamedTuple):
    """A pattern for ``regex``, whose groups have the numbers they have in Java, and the numbers of Java's named groups."""

    pattern: str
    names: dict[str, int]


def translate(pattern: str) -> Translation:
    """Translate a Java pattern. Raises RegexError for one that Java refuses."""
    translator = _Translator(pattern)
    try:
        return Translation(translator.whole(), translator.names)
    except RecursionError:
        raise RegexError("It is nested too deeply", pattern) from None


class _Translator:
    def __init__(self, pattern: str) -> None:
        self._cursor = Cursor(pattern)
        self._groups = 0
        self.names: dict[str, int] = {}

    def whole(self) -> str:
        written = self._alternatives(frozenset())
        if self._cursor.more:
            raise self._cursor.error("Unmatched closing ')'", self._cursor.at - 1)
        return written

    # --- alternatives and groups

    def _alternatives(self, flags: Flags) -> str:
        """Translate up to the end or to the closing parenthesis, which is left to the caller."""
        cursor, written = self._cursor, ""
        while cursor.more and cursor.peek() != ")":
            if "x" in flags and cursor.skip_comment():
                continue
            if cursor.take("|"):
                written += "|"
            elif (changed := self._inline_flags(flags)) is not None:
                flags = changed
            else:
                written += self._quantified(flags)
        return written

    def _inline_flags(self, flags: Flags) -> Flags | None:
        """Read ``(?i)`` and the like, which applies up to the end of the group around it; None for another element."""
        start = self._cursor.at
        if self._cursor.take("(?"):
            changed = self._flag_letters(flags)
            if self._cursor.take(")"):
                return changed
        self._cursor.at = start
        return None

    def _flag_letters(self, flags: Flags) -> Flags:
        on, _, off = self._cursor.take_while("idmsuxU-").partition("-")
        off = off.replace("-", "")
        return (flags | set(on + "u" * ("U" in on))) - set(off + "u" * ("U" in off))

    def _group(self, flags: Flags) -> str:
        """Translate a group after its opening parenthesis."""
        cursor = self._cursor
        if not cursor.take("?"):
            self._groups += 1
            return self._rest_of_group("(", flags)
        for opening in (":", "=", "!", ">", "<=", "<!"):
            if cursor.take(opening):
                return self._rest_of_group(f"(?{opening}", flags)
        if cursor.take("<"):
            name = self._name(">")
            if name in self.names:
                raise cursor.error(f"Named capturing group <{name}> is already defined")
            self._groups += 1
            self.names[name] = self._groups
            return self._rest_of_group("(", flags)
        changed = self._flag_letters(flags)
        if cursor.take(":"):
            return self._rest_of_group("(?:", changed)
        raise cursor.error("Unknown inline modifier", cursor.at)

    def _rest_of_group(self, opening: str, flags: Flags) -> str:
        content = self._alternatives(flags)
        if not self._cursor.take(")"):
            raise self._cursor.error("Unclosed group", len(self._cursor.text))
        return f"{opening}{content})"

    # --- an element and its quantifier

    def _quantified(self, flags: Flags) -> str:
        element = self._element(flags)
        while "x" in flags and self._cursor.skip_comment():
            pass
        quantifier = self._quantifier()
        if not quantifier:
            return element
        opening = "(?>" if element == _ANCHORS["R"] else "(?:"  # Java does not divide \r\n between repetitions
        return f"{opening}{element}){quantifier}"

    def _quantifier(self) -> str:
        """Read a quantifier if one comes next."""
        cursor = self._cursor
        written = self._count() if cursor.take("{") else cursor.take_while("*+?", 1)
        if not written:
            return ""
        return written + cursor.take_while("?+", 1)

    def _count(self) -> str:
        """Read ``{n}``, ``{n,}`` or ``{n,m}`` after its opening brace."""
        cursor = self._cursor
        low = cursor.take_while(string.digits)
        if not low:
            raise cursor.error("Illegal repetition", cursor.at)
        high = cursor.take_while(string.digits) if cursor.take(",") else low
        if not cursor.take("}"):
            raise cursor.error("Unclosed counted closure", cursor.at)
        if high and int(high) < int(low):
            raise cursor.error("Illegal repetition range")
        return f"{{{low},{high}}}"

    def _element(self, flags: Flags) -> str:
        cursor = self._cursor
        if cursor.peek() == "{":  # Java takes a second quantifier for one of an empty element
            return ""
        character = cursor.next()
        if character == "(":
            return self._group(flags)
        if character == "[":
            return read_class(cursor, flags)
        if character == ".":
            return f"[{properties.ANY}]" if "s" in flags else "[^\\n]" if "d" in flags else f"[^{_LINE_ENDS}]"
        if character == "^":
            return _LINE_START if "m" in flags else r"\A"
        if character == "$":
            return _LINE_END if "m" in flags else _BEFORE_FINAL_LINE_END
        if character == "\\":
            return self._escape(flags)
        if character in "*+?":
            raise cursor.error(f"Dangling meta character '{character}'", cursor.at - 1)
        return literal(character, flags)

    # --- escapes

    def _escape(self, flags: Flags) -> str:
        """Translate an escape outside of classes, after its backslash."""
        cursor = self._cursor
        if not cursor.more:
            raise cursor.error("Unexpected internal error", cursor.at)
        if cursor.peek() in "123456789":
            return self._numbered_reference(flags)
        if cursor.take("k"):
            return self._named_reference(flags)
        if cursor.take("Q"):
            return self._quotation(flags)
        if cursor.peek() in "bB":
            return self._boundary(cursor.next(), flags)
        return _ANCHORS[cursor.next()] if cursor.peek() in _ANCHORS else read_escape(cursor, flags)

    def _boundary(self, kind: str, flags: Flags) -> str:
        word = f"[{properties.UNICODE_WORD}]" if "U" in flags else r"[\p{L}\p{Nd}_]"  # not Java's \w
        inside = f"(?<={word})(?={word})|(?<!{word})(?!{word})"
        return f"(?:{inside})" if kind == "B" else f"(?!{inside})"

    def _quotation(self, flags: Flags) -> str:
        quoted = [literal(character, flags) for character in self._cursor.quotation()]
        return "".join(quoted) + (self._quantifier() if quoted else "")

    def _numbered_reference(self, flags: Flags) -> str:
        """Translate a reference; a further digit belongs to it only if there are that many groups so far."""
        cursor = self._cursor
        number = int(cursor.next())
        while cursor.more and cursor.peek() in string.digits and number * 10 + int(cursor.peek()) <= self._groups:
            number = number * 10 + int(cursor.next())
        return self._reference(number, flags)

    def _named_reference(self, flags: Flags) -> str:
        if not self._cursor.take("<"):
            raise self._cursor.error("\\k is not followed by '<' for named capturing group", self._cursor.at)
        name = self._name(">")
        if name not in self.names:
            raise self._cursor.error(f"named capturing group <{name}> does not exist")
        return self._reference(self.names[name], flags)

    def _reference(self, number: int, flags: Flags) -> str:
        if number > self._groups:
            return "(?!)"  # never matches in Java
        return rf"(?i-f:\g<{number}>)" if "i" in flags else rf"\g<{number}>"

    def _name(self, end: str) -> str:
        cursor, start = self._cursor, self._cursor.at
        name = cursor.take_while(string.ascii_letters + string.digits)
        if not name or name[0] in string.digits:
            raise cursor.error("capturing group name does not start with a Latin letter", start)
        if not cursor.take(end):
            raise cursor.error(f"named capturing group is missing trailing '{end}'", cursor.at)
        return name
