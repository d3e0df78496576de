"""Decodes librdkafka's metadata of a consumer's group membership. No I/O.

Producers of Java sink tasks need it to commit offsets in transactions.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from sluiceway.errors import ConnectError

_MAGIC = b"CGMDv2:"
_GENERATION = struct.Struct("=i")


class ConsumerGroup(NamedTuple):
    """A consumer's membership in its group, Java's ``ConsumerGroupMetadata``. ``instance`` is None for dynamic members."""

    id: str
    generation: int
    member: str
    instance: str | None


def consumer_group(metadata: bytes) -> ConsumerGroup:
    """Return what ``Consumer.consumer_group_metadata`` returned, decoded. Raises ConnectError for an unknown format.

    The format (rdkafka_txnmgr.h): a magic, the generation, and the group, member, whether there is no instance, and the instance;
    texts end with a zero byte.
    """
    if not metadata.startswith(_MAGIC):
        raise ConnectError(f"This version of librdkafka describes consumer groups in an unknown format: {metadata[:8]!r}.")
    (generation,) = _GENERATION.unpack_from(metadata, len(_MAGIC))
    group, member, rest = metadata[len(_MAGIC) + _GENERATION.size :].split(b"\0", 2)
    instance = None if rest[:1] == b"\1" else rest[1:].removesuffix(b"\0").decode()
    return ConsumerGroup(group.decode(), generation, member.decode(), instance)
