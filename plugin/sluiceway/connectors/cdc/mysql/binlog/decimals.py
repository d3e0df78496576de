"""Decodes packed decimals (NEWDECIMAL) as unscaled integers. No I/O."""

from __future__ import annotations

from collections.abc import Callable

_DIGITS_PER_WORD = 9
_WORD = 10**_DIGITS_PER_WORD
_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes of a group of so many digits."""


def decimal_bytes(precision: int, scale: int) -> int:
    """Return the size of a DECIMAL(precision, scale) in rows."""
    whole, fraction = precision - scale, scale
    return sum(digits // _DIGITS_PER_WORD * 4 + _BYTES[digits % _DIGITS_PER_WORD] for digits in (whole, fraction))


def decimal_reader(precision: int, scale: int) -> Callable[[bytes, int], int]:
    """Return a reader of DECIMAL(precision, scale): groups of up to 9 digits, big-endian, inverted if negative."""
    size = decimal_bytes(precision, scale)
    groups = decimal_groups(precision, scale)
    mask = (1 << 8 * size) - 1
    sign = 1 << (8 * size - 1)
    from_bytes = int.from_bytes

    def read(data: bytes, at: int) -> int:
        packed = from_bytes(data[at : at + size], "big")
        negative = not packed & sign
        packed = (packed ^ mask if negative else packed) & ~sign
        value = 0
        for shift, group_mask, factor in groups:
            value = value * factor + (packed >> shift & group_mask)
        return -value if negative else value

    return read


def decimal_groups(precision: int, scale: int) -> list[tuple[int, int, int]]:
    """Return shift, mask and factor of each group of digits, from the first to the last."""
    whole, fraction = precision - scale, scale
    digits = [whole % _DIGITS_PER_WORD] if whole % _DIGITS_PER_WORD else []
    digits += [_DIGITS_PER_WORD] * (whole // _DIGITS_PER_WORD + fraction // _DIGITS_PER_WORD)
    digits += [fraction % _DIGITS_PER_WORD] if fraction % _DIGITS_PER_WORD else []
    groups, bits = [], 0
    for count in reversed(digits):
        width = 8 * _BYTES[count]
        groups.append((bits, (1 << width) - 1, 10**count))
        bits += width
    return groups[::-1]
