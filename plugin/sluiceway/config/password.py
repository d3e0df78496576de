"""Holds config values that must not be shown."""

from __future__ import annotations

HIDDEN = "[hidden]"


class Password:
    """A secret that is formatted as ``[hidden]`` (Kafka's ``Password``)."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    @property
    def value(self) -> str:
        """The secret itself."""
        return self._value

    def __str__(self) -> str:
        return HIDDEN

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


def revealed(value: object) -> str | None:
    """Return the text of a value, of a password its secret; None for None."""
    if value is None:
        return None
    return value.value if isinstance(value, Password) else str(value)
