"""Adjusts schema names and field names to what Avro allows, as Debezium's ``schema.name.adjustment.mode`` does."""

from __future__ import annotations

from collections.abc import Callable

Adjuster = Callable[[str], str]

MODES = ("none", "avro", "avro_unicode")

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = frozenset("0123456789")


def schema_name_adjuster(mode: str) -> Adjuster:
    """Return the function that adjusts full names, in which dots separate namespaces."""
    return _adjuster(mode, _DIGITS | {"."})


def field_name_adjuster(mode: str) -> Adjuster:
    """Return the function that adjusts the names of fields."""
    return _adjuster(mode, _DIGITS)


def _adjuster(mode: str, more: frozenset[str]) -> Adjuster:
    if mode == "none":
        return lambda name: name
    by_code = mode == "avro_unicode"
    first = _LETTERS if by_code else _LETTERS | {"_"}
    other = first | more

    def adjust(name: str) -> str:
        """Replace what is not allowed. As in Java, a character beyond U+FFFF counts as two."""
        encoded = name.encode("utf-16-be", "surrogatepass")
        units = [chr(int.from_bytes(encoded[at : at + 2], "big")) for at in range(0, len(encoded), 2)]
        return "".join(unit if unit in (other if at else first) else replaced(unit, at) for at, unit in enumerate(units))

    def replaced(unit: str, at: int) -> str:
        if by_code:
            code = f"{ord(unit):x}"
            return f"_u00{code}" if len(code) <= 2 else f"_u{code}"
        return f"_{unit}" if at == 0 and unit.isdecimal() else "_"

    return adjust
