"""Translates librdkafka's errors into Sluiceway's, so that no caller of this package handles a KafkaException."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from sluiceway.errors import ConnectError, FencedError, KafkaClientError

_FENCED = {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}

_UNREACHABLE = " Check bootstrap.servers, and that its brokers run and can be reached from here."

# What to do, for errors whose name identifies it.
_ADVICE = {
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": " The principal needs WRITE and DESCRIBE on the transactional id.",
    "GROUP_AUTHORIZATION_FAILED": " The principal needs READ on the consumer group.",
    **dict.fromkeys(("_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT", "_TRANSPORT"), _UNREACHABLE),
}

TOO_LARGE = frozenset({"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_MSG_SIZE"})
"""The names of errors for records that the client or the brokers refuse for their size, at each attempt."""

MISSING_TOPIC = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_ID}
)


def to_connect_error(error: KafkaError, doing: str) -> ConnectError:
    """Return the error to raise for a failed client call. ``doing`` completes the sentence ``Cannot ...``."""
    if error.code() in _FENCED:
        return FencedError(f"Cannot {doing}: a newer writer with the same transactional.id has taken over.")
    return KafkaClientError(f"Cannot {doing}: {error.str()} ({error.name()}).{_ADVICE.get(error.name(), '')}", error.name())


@contextmanager
def mapped_errors(doing: str) -> Iterator[None]:
    """Convert a KafkaException raised inside the block into FencedError or KafkaClientError."""
    try:
        yield
    except KafkaException as exception:
        raise to_connect_error(exception.args[0], doing) from exception
