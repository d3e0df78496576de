"""Maps the servers' character sets to Python's codecs. No I/O."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping

BINARY_COLLATION = 63

_CODECS = {
    "armscii8": "latin_1",
    "ascii": "ascii",
    "big5": "big5",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "cp932": "cp932",
    "dec8": "latin_1",
    "eucjpms": "euc_jp",
    "euckr": "euc_kr",
    "gb18030": "gb18030",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "geostd8": "latin_1",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "hp8": "hp_roman8",
    "keybcs2": "cp852",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "sjis": "shift_jis",
    "swe7": "ascii",
    "tis620": "tis_620",
    "ucs2": "utf_16_be",
    "ujis": "euc_jp",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "utf32": "utf_32_be",
    "utf8": "utf_8",
    "utf8mb3": "utf_8",
    "utf8mb4": "utf_8",
}


class Charsets:
    """The character set of each collation of a server, by the collation's id."""

    def __init__(self, names: Mapping[int, str] | None = None) -> None:
        self._names = dict(names or {})

    def name(self, collation: int) -> str:
        """Return the character set's name; ``binary`` for binary strings."""
        if collation == BINARY_COLLATION:
            return "binary"
        name = self._names.get(collation)
        return name if name is not None else _standard_name(collation)


def _standard_name(collation: int) -> str:
    """Return the character set of a collation that all servers number alike."""
    from pymysql.charset import charset_by_id

    try:
        return str(getattr(charset_by_id(collation), "name", "utf8mb4"))
    except KeyError:
        return "utf8mb4"


def decoder(charset: str) -> Callable[[bytes], str]:
    """Return a function that decodes a character set; bytes that are not valid become replacement characters, as in Java."""
    codec = _CODECS.get(charset.lower(), "utf_8")
    if codec == "utf_8":
        return _decode_utf_8
    decode = codecs.getdecoder(codec)
    return lambda data: decode(data, "replace")[0]


def _decode_utf_8(data: bytes) -> str:
    return data.decode("utf_8", "replace")


def is_utf_8(charset: str) -> bool:
    return _CODECS.get(charset.lower(), "utf_8") == "utf_8"
