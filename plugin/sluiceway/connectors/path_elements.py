"""Turns names that come from records into elements of paths, so that no record writes outside its sink's folder. No I/O."""

from __future__ import annotations

import functools
import hashlib
import re

from sluiceway.errors import DataError

_MAX_BYTES = 255
_CACHED = 4096
# Hive's, which Spark and Trino decode in names of partition folders.
_QUOTED = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(0x20)))
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The name that Hive gives to the value null of a partition."""

_DELTA_LOG = "_delta_log"


@functools.lru_cache(_CACHED)
def path_element(name: str) -> str:
    """Return a name as one element of a path, quoted as Hive does. Topics that Kafka allows stay as they are."""
    if name in ("", ".", ".."):
        return name.replace(".", "%2E") or NULL_PARTITION
    return "".join(_quoted(char) if char in _QUOTED or "\ud800" <= char <= "\udfff" else char for char in name)


def _quoted(char: str) -> str:
    """Return the bytes of a character as percent codes; half a surrogate pair has no UTF-8, which storages want."""
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))


def check_length(element: str) -> str:
    """Return an element of a path. Raises DataError if it is longer than file systems allow."""
    if len(element.encode()) > _MAX_BYTES:
        raise DataError(
            f"The folder name {element[:60]}... has more than {_MAX_BYTES} bytes. "
            "Use a shorter topic, or partition by another field."
        )
    return element


def shortened(element: str) -> str:
    """Return an element of a path; of one that is longer than file systems allow, its beginning and a hash of the whole."""
    encoded = element.encode()
    if len(encoded) <= _MAX_BYTES:
        return element
    mark = f"~{hashlib.sha256(encoded).hexdigest()}"
    begin = encoded[: _MAX_BYTES - len(mark)].decode(errors="ignore")
    return re.sub("%.?$", "", begin) + mark


def check_table(name: str, *, namespaced: bool = False) -> str:
    """Return a table's name whose parts, separated by dots, are elements of paths as they are. Raises DataError for another.

    ``namespaced``: the name has at least two parts.
    Tables are not quoted: clients of tables decode percent codes in their locations, and put names into URLs of catalogs.
    """
    for part in name.split("."):
        if part == _DELTA_LOG or part.isspace() or part != path_element(part):
            raise DataError(
                f"{name[:60]!r} is no name for a table: a part between dots is empty or {_DELTA_LOG}, or has a character such as "
                "/, % or :. Change the route field by a transform."
            )
        check_length(part)
    if namespaced and "." not in name:
        raise DataError(f"{name[:60]!r} is no name for a table: it has no namespace. Change the route field by a transform.")
    return name
