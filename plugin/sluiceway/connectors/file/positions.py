"""The offsets of FileStreamSource: how far a file has been read. Pure."""

from __future__ import annotations

from sluiceway.api import Offset, Partition
from sluiceway.errors import ConnectError

FILENAME_FIELD = "filename"
POSITION_FIELD = "position"


def check_offset(partition: Partition | None, offset: Offset | None) -> None:
    """Raise ConnectError for an offset that no task could start from; one that is to be forgotten is always in order."""
    if offset is None:
        return
    if POSITION_FIELD not in offset:
        raise ConnectError(f"Offset objects should either be null or contain the key '{POSITION_FIELD}'")
    position = offset[POSITION_FIELD]
    if type(position) is not int:
        raise ConnectError(f"The value for the '{POSITION_FIELD}' key in the offset is expected to be a Long value")
    if position < 0:
        raise ConnectError(f"The value for the '{POSITION_FIELD}' key in the offset should be a non-negative value")
    if partition is None:
        raise ConnectError("Partition objects cannot be null")
    if FILENAME_FIELD not in partition:
        raise ConnectError(f"Partition objects should contain the key '{FILENAME_FIELD}'")
