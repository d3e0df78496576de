"""Lists keys in the iteration order of Java's HashMap. No I/O.

The order is visible in Connect: task configs are written in it, and it decides which of two fields with the same new name
remains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_LOAD_FACTOR = 0.75
_FIRST_TABLE = 16


def string_hash(text: str) -> int:
    """Return Java's ``String.hashCode`` as an unsigned 32-bit number; computed over UTF-16 units."""
    result = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        result = (31 * result + (high << 8 | low)) & 0xFFFFFFFF
    return result


def grown_table_size(entries: int) -> int:
    """Return the number of buckets of a HashMap after so many single ``put`` calls."""
    size = _FIRST_TABLE
    while entries > size * _LOAD_FACTOR:
        size *= 2
    return size


def copied_table_size(entries: int) -> int:
    """Return the number of buckets of a HashMap copied from one with so many entries (``new HashMap<>(map)``)."""
    wanted = int(entries / _LOAD_FACTOR + 1.0)
    return 1 << max(wanted - 1, 0).bit_length()


def in_buckets(keys: Iterable[Any], table_size: int) -> list[Any]:
    """Return keys, given in insertion order, in the order of a table's buckets. Keys that are not strings come last."""

    def bucket(key: object) -> int:
        if not isinstance(key, str):
            return table_size
        code = string_hash(key)
        return (code ^ code >> 16) & (table_size - 1)

    return sorted(keys, key=bucket)


def hash_map_order(keys: Iterable[Any]) -> list[Any]:
    """Return keys, given in insertion order, in the order of a HashMap filled by ``put``. Keys that are not strings come last."""
    listed: list[Any] = list(keys)
    return in_buckets(listed, grown_table_size(len(listed)))


def task_config_order(config: Mapping[str, str], added: str) -> dict[str, str]:
    """Return a task's config in the order in which Connect writes it.

    Connect reads the connector's config into a HashMap key by key, copies the map, puts the key ``added`` into the copy, and
    copies that again. Keys of one bucket stay in insertion order, so ``config`` must be in the order of the stored config.
    """
    read = in_buckets([key for key in config if key != added], grown_table_size(len(config) - (added in config)))
    if added in config:
        read.append(added)
    return {key: config[key] for key in in_buckets(read, copied_table_size(len(config)))}
