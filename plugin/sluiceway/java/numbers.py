"""Parses, prints and narrows numbers as Java does. No I/O. Text that is not a number raises ValueError."""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal
from fractions import Fraction

from sluiceway.java.blanks import trim

_FLOAT = struct.Struct(">f")
_FLOATING = re.compile(
    r"[+-]?(?:NaN|Infinity|(?P<decimal>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?"
    r"|0[xX](?P<hex>(?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?)"
)
_DECIMAL = re.compile(r"([+-]?)(?=\.?\d)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?")
_MANY_DIGITS = 4000  # more than any width needs; Python's int() refuses texts a little longer
_INT_MAX, _INT_MIN = (1 << 31) - 1, -(1 << 31)


def parse_integer(text: str, bits: int) -> int:
    """Parse an integer as ``Byte.parseByte`` (8 bits) to ``Long.parseLong`` (64) do.

    Accepts a sign and the digits of any script; refuses blanks, underscores and fractions.
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal() or len(digits) > _MANY_DIGITS:
        raise ValueError(f'For input string: "{text}"')
    value = -int(digits) if text[0] == "-" else int(digits)
    if value.bit_length() >= bits and value != -1 << (bits - 1):
        raise ValueError(f'Value out of range. Value:"{text}" Radix:10' if bits < 32 else f'For input string: "{text}"')
    return value


def whole_number(text: str) -> int | None:
    """Return the number that digits write; None for other text, and for more digits than ``int`` takes."""
    return int(text) if text.isdecimal() and len(text) <= _MANY_DIGITS else None


def parse_double(text: str) -> float:
    """Parse a double as ``Double.parseDouble`` does: trimmed, with ``1f``, ``0x1p3``, ``NaN`` and ``Infinity``."""
    sign, magnitude = _magnitude(text)
    if isinstance(magnitude, float):
        return sign * magnitude
    try:
        return sign * float(magnitude)
    except OverflowError:
        return sign * float("inf")


def parse_float32(text: str) -> float:
    """Parse a float as ``Float.parseFloat`` does: rounded once to 32 bits, without a double in between."""
    sign, magnitude = _magnitude(text)
    return sign * (magnitude if isinstance(magnitude, float) else _nearest_float32(magnitude))


def _magnitude(text: str) -> tuple[float, Fraction | float]:
    """Return the sign and the exact magnitude; a float if it is zero, not finite, or too large for a double."""
    trimmed = trim(text)
    found = _FLOATING.fullmatch(trimmed)
    if found is None:
        raise ValueError(f'For input string: "{trimmed}"' if trimmed else "empty String")
    sign = -1.0 if trimmed[0] == "-" else 1.0
    if found["hex"]:
        try:
            rough = float.fromhex("0x" + found["hex"])
        except OverflowError:
            return sign, float("inf")
        return sign, _hex_fraction(found["hex"]) if 0 < rough < float("inf") else rough
    if found["decimal"]:
        rough = float(found["decimal"])
        return sign, Fraction(found["decimal"]) if 0 < rough < float("inf") else rough
    return sign, float("nan") if "N" in trimmed else float("inf")


def _hex_fraction(text: str) -> Fraction:
    mantissa, exponent = re.split("[pP]", text)
    whole, _, fraction = mantissa.partition(".")
    return Fraction(int(whole + fraction, 16)) * Fraction(2) ** (int(exponent) - 4 * len(fraction))


def _nearest_float32(magnitude: Fraction) -> float:
    """Return the nearest 32-bit float (ties to even), by way of a double that is rounded to odd."""
    rough = float(magnitude)
    exact = Fraction(rough)
    if exact != magnitude:
        bits: int = struct.unpack(">q", struct.pack(">d", rough))[0]
        # Rounding to odd keeps the second rounding from seeing a tie that is none.
        if bits % 2 == 0:
            bits += 1 if magnitude > exact else -1
        rough = struct.unpack(">d", struct.pack(">q", bits))[0]
    try:
        rounded: float = struct.unpack(">f", struct.pack(">f", rough))[0]
        return rounded
    except OverflowError:
        return float("inf")


def double_to_integer(value: float, bits: int) -> int:
    """Cast a double as Java does: NaN is 0, large values saturate; 8 and 16 bits are the low bits of a saturated int."""
    if value != value:
        return 0
    width = 64 if bits == 64 else 32
    lowest, highest = -(1 << (width - 1)), (1 << (width - 1)) - 1
    if value >= highest:
        whole = highest
    elif value <= lowest:
        whole = lowest
    else:
        whole = int(value)
    return wrap(whole, bits)


def decimal_to_integer(value: Decimal, bits: int) -> int:
    """Return the low bits of a decimal's integer part, as ``BigDecimal.longValue``, ``intValue`` and so on do.

    ``int(value)`` would compute billions of digits for a few bytes such as ``1E+999999999``.
    """
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or exponent >= 64 or value.adjusted() < 0:  # a multiple of 2**64, or less than 1
        return 0
    return wrap(int(value), bits)


def parse_decimal(text: str) -> Decimal:
    """Parse a decimal as ``new BigDecimal(text)`` does, with every digit and the scale."""
    found = _DECIMAL.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a decimal number")
    sign, whole, fraction, exponent = found.groups(default="")
    power = int(exponent or 0)
    if not _INT_MIN <= power <= _INT_MAX or not _INT_MIN < len(fraction) - power <= _INT_MAX:
        raise ValueError("Too many nonzero exponent digits." if abs(power) > _INT_MAX else "Scale out of range.")
    digits = (whole + fraction).lstrip("0") or "0"
    return Decimal((int(sign == "-" and digits != "0"), tuple(map(int, digits)), power - len(fraction)))


def decimal_text(value: Decimal) -> str:
    """Return ``BigDecimal.toString``: ``1.50``, ``5E-10``, ``1E+2``."""
    if not value.is_finite():
        raise ValueError(f"{value} is not a BigDecimal")
    return str(value if value else value.copy_abs())  # Java's zero has no sign


def java_double(value: float) -> str:
    """Return ``Double.toString(value)`` of JDK 17: plain from 0.001 to below 10,000,000, else with an exponent."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "e" not in text else format(Decimal(text), "f")
    return _java_text(value, 53)


def java_float(value: float) -> str:
    """Return ``Float.toString(value)`` of JDK 17 for a float that 32 bits can hold."""
    if 1e-3 <= abs(value) < 1e7:  # here JDK 17 prints the fewest digits that a float needs
        if value.is_integer():
            return f"{int(value)}.0"
        for pattern in ("%.6g", "%.7g", "%.8g"):
            text = pattern % value
            number = float(text)
            if number == value or to_float32(number) == value:
                return text
        return "%.9g" % value  # noqa: UP031 (faster than an f-string)
    return _java_text(value, 24)


def _java_text(value: float, significant_bits: int) -> str:
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if not value:
        return sign + "0.0"
    digits, exponent = _digits(abs(value), significant_bits)
    if 0 < exponent <= 7:
        return f"{sign}{digits[:exponent].ljust(exponent, '0')}.{digits[exponent:] or '0'}"
    if -3 < exponent <= 0:
        return f"{sign}0.{'0' * -exponent}{digits}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent - 1}"


def _digits(value: float, significant_bits: int) -> tuple[str, int]:
    """Return the digits to print and the position of the decimal point among them."""
    if value < 2**63 and value.is_integer():
        return _integer_digits(int(value), significant_bits)
    return _fraction_digits(value, significant_bits)


def _integer_digits(value: int, significant_bits: int) -> tuple[str, int]:
    """Return an integer's digits as Java prints a float's: rounded to the precision of its last bit."""
    dropped_bits = value.bit_length() - significant_bits - 2
    dropped = len(str(1 << dropped_bits)) - 1 if dropped_bits > 1 else 0
    power: int = 10**dropped
    text = str((value + power // 2) // power)
    return text.rstrip("0"), len(text) + dropped


def _fraction_digits(value: float, significant_bits: int) -> tuple[str, int]:
    """Return the digits that distinguish a value from its neighbors.

    JDK 17 does not always print the shortest text: with an exponent it prints at least two digits, a text halfway between two
    floats counts for neither, and its sums may overflow.
    """
    tens, bits = _registers(value, significant_bits)

    def ends() -> tuple[bool, bool]:
        if not bits:
            return rest < reach, rest + reach > one
        b, m = rest * tens // one, wrap(reach * tens // one, bits)
        return (b < m, wrap(b + m, bits) > tens) if m > 0 else (True, True)

    numerator, denominator = value.as_integer_ratio()
    half_gap, gap_scale = _half_gap(value, significant_bits).as_integer_ratio()
    rest, reach, one = numerator * gap_scale, half_gap * denominator, denominator * gap_scale
    exponent = 0
    while rest >= one:
        one, exponent = one * 10, exponent + 1
    while rest * 10 < one:
        rest, reach, exponent = rest * 10, reach * 10, exponent - 1
    at_least = 1 if -3 < exponent <= 8 else 2
    # A power of ten within reach above counts as the first digit, a zero until it is rounded up.
    number, count = 0, int(rest + reach > one)
    exponent += count
    low = high = False
    while count < at_least or not (low or high):
        digit, rest = divmod(rest * 10, one)
        reach *= 10
        number, count = number * 10 + digit, count + 1
        low, high = ends()
    if high and (not low or 2 * rest > one or (2 * rest == one and number % 2)):
        number += 1
    text = str(number)
    return text.rstrip("0"), exponent + len(text) - count


def _registers(value: float, significant_bits: int) -> tuple[int, int]:
    """Return the number that JDK 17 compares remainders with, and its width in bits (0: unlimited).

    For value = b / s, JDK 17 removes common powers of two and takes the narrowest integers that hold b and 10 s.
    """
    mantissa, denominator = value.as_integer_ratio()
    twos = (mantissa & -mantissa).bit_length() - 1
    mantissa >>= twos
    length, tiny = mantissa.bit_length(), denominator.bit_length() - 1
    exponent = length - 1 + twos - tiny
    fives = math.floor((mantissa / (1 << (length - 1)) - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981)
    b5, s5 = max(0, -fives), max(0, fives)
    b2, s2 = b5 + tiny + exponent, s5 + tiny
    m2 = b2 - significant_bits
    b2 -= length - 1
    common = min(b2, s2)
    b2, s2, m2 = b2 - common, s2 - common, m2 - common - (length == 1)
    if m2 < 0:
        b2, s2 = b2 - m2, s2 - m2
    needed = max(length + b2 + _bits_of_fives(b5), s2 + 1 + _bits_of_fives(s5 + 1))
    return 10 * 5**s5 << s2, 32 if needed < 32 else 64 if needed < 64 else 0


def _bits_of_fives(power: int) -> int:
    return (5**power).bit_length() if 0 < power < 27 else 3 * power


def _half_gap(value: float, significant_bits: int) -> Fraction:
    """Return half the distance to the nearer neighbor; Java assumes that powers of two always have a nearer one below."""
    mantissa, exponent = math.frexp(value)
    lowest = -1074 if significant_bits == 53 else -149
    unit = max(exponent - significant_bits, lowest)
    return Fraction(2) ** (unit - 1 - (mantissa == 0.5))


def wrap(value: int, bits: int) -> int:
    """Return the low bits of an integer as Java's narrowing casts do (two's complement)."""
    half = 1 << (bits - 1)
    return (value + half & (1 << bits) - 1) - half


def to_float32(value: float) -> float:
    """Round a float to 32 bits as Java's ``(float)`` does; large values become infinite."""
    try:
        rounded: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
        return rounded
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
