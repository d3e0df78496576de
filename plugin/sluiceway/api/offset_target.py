"""The place from which a user wants a stopped connector to continue. No I/O."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class OffsetTargetKind(enum.Enum):
    """The kinds of ``kafka-consumer-groups.sh --reset-offsets``."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    SHIFT = "shift"


@dataclass(frozen=True, slots=True)
class OffsetTarget:
    """A position for ``SourceConnector.find_offsets``.

    ``number`` is for TIMESTAMP the time in milliseconds since the epoch: the first record at or after it, or the end if there is
    none. For SHIFT it is the number of records to go on, or back if it is negative, at most to the end or the beginning.
    """

    kind: OffsetTargetKind
    number: int = 0
