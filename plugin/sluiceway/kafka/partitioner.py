"""Computes the partition to which Kafka's clients write a record with a key. No I/O."""

from __future__ import annotations

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a topic with that many partitions, as Kafka's default partitioner and ours choose it."""
    return (_murmur2(key) & 0x7FFFFFFF) % partitions


def _murmur2(data: bytes) -> int:
    hashed = (_SEED ^ len(data)) & _MASK
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        block = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        block = (block ^ block >> 24) * _M & _MASK
        hashed = (hashed * _M & _MASK) ^ block
    if rest := data[whole:]:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * _M & _MASK
    hashed = (hashed ^ hashed >> 13) * _M & _MASK
    return hashed ^ hashed >> 15
