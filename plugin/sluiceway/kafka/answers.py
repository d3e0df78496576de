"""Waits for the answers to admin requests.

The error in a request's future is never raised: its traceback would hold the frames that hold the future, and so the admin
client, with its threads and its connections, until Python next looks for cycles.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

from sluiceway.kafka.errors import to_connect_error

T = TypeVar("T")


def answer(future: Future[T], doing: str) -> T:
    """Return the answer to a request. Raises FencedError or KafkaClientError; ``doing`` completes the sentence ``Cannot ...``."""
    error = refusal(future)
    if error is not None:
        raise to_connect_error(error, doing)
    return future.result()


def refusal(future: Future[T]) -> KafkaError | None:
    """Wait for the answer to a request, and return its error, if it is one."""
    error = future.exception()
    if isinstance(error, KafkaException):
        found: KafkaError = error.args[0]
        return found
    if error is not None:
        raise error
    return None
