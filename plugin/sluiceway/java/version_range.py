"""Parses and compares version ranges in Maven's notation, the values of ``*.plugin.version`` keys. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass

LATEST = "latest"

_QUALIFIERS = ("alpha", "beta", "milestone", "rc", "snapshot", "", "sp")
_BEFORE_NUMBERS = {"a": "alpha", "b": "beta", "m": "milestone"}
_SAME = {"cr": "rc", "ga": "", "final": "", "release": ""}
_PARTS = re.compile(r"[0-9]+|(?P<letter>[abm](?=[0-9]))|[^0-9._-]+")


@dataclass(frozen=True, slots=True)
class Restriction:
    """An interval of versions; a bound that is None is open."""

    low: str | None
    low_included: bool
    high: str | None
    high_included: bool

    def __contains__(self, version: str) -> bool:
        key = version_key(version)
        if self.low is not None and (key < version_key(self.low) or (key == version_key(self.low) and not self.low_included)):
            return False
        return self.high is None or key < version_key(self.high) or (key == version_key(self.high) and self.high_included)

    def __str__(self) -> str:
        return f"{'[' if self.low_included else '('}{self.low or ''},{self.high or ''}{']' if self.high_included else ')'}"


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A union of intervals."""

    restrictions: tuple[Restriction, ...]

    @classmethod
    def parse(cls, text: str | None) -> VersionRange | None:
        """Parse a range; a bare version matches only itself. Return None for the latest version (``latest`` or no text).

        Raises ValueError with Maven's message.
        """
        if text is None or text.strip().lower() == LATEST:
            return None
        return cls(_restrictions(text if text[:1] in ("[", "(") else f"[{text.strip()}]"))

    def __contains__(self, version: str) -> bool:
        return any(version in restriction for restriction in self.restrictions)

    def __str__(self) -> str:
        return ",".join(map(str, self.restrictions))


def _restrictions(text: str) -> tuple[Restriction, ...]:
    found: list[Restriction] = []
    rest = text
    while rest[:1] in ("[", "(") and rest:
        end = re.search(r"[\])]", rest)
        if end is None:
            raise ValueError(f"Unbounded range: {text}")
        restriction = _restriction(rest[: end.end()])
        if found and _overlap(found[-1], restriction):
            raise ValueError(f"Ranges overlap: {text}")
        found.append(restriction)
        rest = rest[end.end() :].strip().removeprefix(",").strip()
    if rest:
        raise ValueError(f"Only fully-qualified sets allowed in multiple set scenario: {text}")
    return tuple(found)


def _overlap(before: Restriction, after: Restriction) -> bool:
    return before.high is not None and (after.low is None or version_key(after.low) < version_key(before.high))


def _restriction(text: str) -> Restriction:
    low_included, high_included = text[0] == "[", text[-1] == "]"
    low, comma, high = (part.strip() for part in text[1:-1].partition(","))
    if not comma:
        if not (low_included and high_included):
            raise ValueError(f"Single version must be surrounded by []: {text}")
        return Restriction(low, True, low, True)
    if (
        low
        and high
        and (
            version_key(low) > version_key(high)
            or (version_key(low) == version_key(high) and not (low_included and high_included))
        )
    ):
        raise ValueError(f"Range defies version ordering: {text}")
    return Restriction(low or None, low_included, high or None, high_included)


def version_key(version: str) -> tuple[tuple[int, int, str], ...]:
    """Return the sort key of a version: numbers as numbers, qualifiers in Maven's order.

    Ignores zeros at the end and before a qualifier.
    """
    plain = re.sub(r"(?:[.-]?\b0+)+(?=[.-]?[a-z]|$)", "", version.lower())
    return (*(_part(found) for found in _PARTS.finditer(plain)), (_QUALIFIERS.index(""), 0, ""))


def _part(found: re.Match[str]) -> tuple[int, int, str]:
    text = found[0]
    if text.isdecimal():
        return len(_QUALIFIERS) + 1, int(text), ""
    name = _BEFORE_NUMBERS[text] if found["letter"] else _SAME.get(text, text)
    return (_QUALIFIERS.index(name), 0, "") if name in _QUALIFIERS else (len(_QUALIFIERS), 0, name)
