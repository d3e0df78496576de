"""Encodes and decodes text in Java's character sets, by Java's names, for StringConverter's encoding options."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import NamedTuple


class Charset(NamedTuple):
    """A character set. Neither function raises: what cannot be mapped becomes ``?`` or U+FFFD."""

    encode: Callable[[str], bytes]
    decode: Callable[[bytes], str]


def charset(name: str) -> Charset:
    """Return the character set of a name that Java knows. Raises LookupError."""
    known = _UNICODE.get(name.lower())
    if known is not None:
        return known
    if not _LEGAL.fullmatch(name):
        raise LookupError(f"{name!r} is not a legal name of a character set")
    codec = codecs.lookup(name).name
    if codec.startswith("utf") or codec.replace("_", "-") in _PYTHONS_OWN:
        raise LookupError(f"Java has no character set {name}")
    "".encode(codec)  # raises LookupError for codecs of bytes, such as base64
    return _simple(codec)


def _simple(codec: str) -> Charset:
    return Charset(lambda text: text.encode(codec, "replace"), lambda data: data.decode(codec, _REPLACE))


def _marked(codec: str, mark: bytes, marks: dict[bytes, str]) -> Charset:
    """Return a character set that a byte order mark selects when reading (none: ``codec``), and that writes ``mark`` first."""

    def decode(data: bytes) -> str:
        for found, marked_codec in marks.items():
            if data.startswith(found):
                return data[len(found) :].decode(marked_codec, "replace")
        return data.decode(codec, "replace")

    return Charset(lambda text: mark + text.encode(codec, "replace") if text else b"", decode)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Replace bad bytes as Java does: half a surrogate pair in UTF-8 is one U+FFFD for all three bytes."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    if _SURROGATE.match(error.object, error.start) and error.encoding == "utf-8":
        return "\ufffd", error.start + 3
    return "\ufffd", error.end


_REPLACE = "sluiceway-java-replace"
codecs.register_error(_REPLACE, _replaced)

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_LEGAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9\-+.:_]*")
_PYTHONS_OWN = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem"})

UTF_8 = _simple("utf-8")
_UTF_16 = _marked("utf-16-be", codecs.BOM_UTF16_BE, {codecs.BOM_UTF16_BE: "utf-16-be", codecs.BOM_UTF16_LE: "utf-16-le"})
_UTF_32 = _marked("utf-32-be", b"", {codecs.BOM_UTF32_BE: "utf-32-be", codecs.BOM_UTF32_LE: "utf-32-le"})
_UNICODE = {
    **dict.fromkeys(("utf-8", "utf8", "unicode-1-1-utf-8"), UTF_8),
    **dict.fromkeys(("utf-16", "utf_16", "utf16", "unicode", "unicodebig"), _UTF_16),
    **dict.fromkeys(("utf-16be", "utf_16be", "x-utf-16be", "iso-10646-ucs-2", "unicodebigunmarked"), _simple("utf-16-be")),
    **dict.fromkeys(("utf-16le", "utf_16le", "x-utf-16le", "unicodelittleunmarked"), _simple("utf-16-le")),
    **dict.fromkeys(("utf-32", "utf_32", "utf32", "iso-10646-ucs-4"), _UTF_32),
    **dict.fromkeys(("utf-32be", "utf_32be", "x-utf-32be"), _simple("utf-32-be")),
    **dict.fromkeys(("utf-32le", "utf_32le", "x-utf-32le"), _simple("utf-32-le")),
}
