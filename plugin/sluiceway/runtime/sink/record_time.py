"""Finds the time by which a message belongs to an interval. Runs on an executor."""

from __future__ import annotations

from collections.abc import Callable

from sluiceway.api import Converter
from sluiceway.data.field_time import millis_at
from sluiceway.errors import DataError
from sluiceway.kafka.clients import ConsumedMessage

NO_TIME = -1

TimeOf = Callable[[ConsumedMessage], int]
"""Returns a message's time in milliseconds since the epoch; ``NO_TIME`` for one that has none."""


def kafka_time(message: ConsumedMessage) -> int:
    """Return a message's timestamp: its producer's, or the broker's."""
    kind, time = message.timestamp()
    return time if kind else NO_TIME


def field_time(field: str, converter: Converter) -> TimeOf:
    """Return the function from messages to the time in a field of their values; dots lead into nested structs and maps.

    The timestamp stands in for a time that is missing, or cannot be read, and for one that is later: reading an interval begins
    with the first message that has one of its timestamps, which would miss what is dated ahead.
    """

    def time_of(message: ConsumedMessage) -> int:
        at = kafka_time(message)
        try:
            own = millis_at(converter.to_connect_data(message.topic() or "", message.value()).value, field)
        except DataError:  # with a value that cannot be converted, errors.tolerance decides what becomes of it
            return at
        return min(own, at)

    return time_of
