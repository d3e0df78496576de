"""The order in which Java's HashMap gives its keys: Connect writes task configs in it. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping

_LOAD_FACTOR = 0.75
_FIRST_TABLE = 16


def string_hash(text: str) -> int:
    """Return Java's ``String.hashCode`` as an unsigned 32-bit number; computed over UTF-16 units."""
    result = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        result = (31 * result + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return result


def grown_table_size(entries: int) -> int:
    """Return how many buckets a HashMap has into which so many entries were put one by one."""
    size = _FIRST_TABLE
    while entries > size * _LOAD_FACTOR:
        size *= 2
    return size


def copied_table_size(entries: int) -> int:
    """Return how many buckets a HashMap has that was made as a copy of one with so many entries."""
    wanted = int(entries / _LOAD_FACTOR + 1.0)
    return 1 << max(wanted - 1, 0).bit_length()


def hash_map_order(config: Mapping[str, str], added: str) -> dict[str, str]:
    """Return a task's config in the order in which Connect writes it.

    Connect reads the connector's config into a HashMap key by key, copies it, puts the key ``added`` into the copy, and
    copies that once more. Keys that share a bucket come in the order in which they went in; so the given order has to be
    that of the stored connector config.
    """
    read = _in_buckets([key for key in config if key != added], grown_table_size(len(config) - (added in config)))
    if added in config:
        read.append(added)
    return {key: config[key] for key in _in_buckets(read, copied_table_size(len(config)))}


def _in_buckets(keys: list[str], table_size: int) -> list[str]:
    def bucket(key: str) -> int:
        hash_code = string_hash(key)
        return (hash_code ^ hash_code >> 16) & (table_size - 1)

    return sorted(keys, key=bucket)
