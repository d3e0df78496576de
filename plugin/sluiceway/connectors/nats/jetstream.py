"""The requests to JetStream that the connectors need: the states of streams and consumers, and consumers to create."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple

from sluiceway.connectors.errors import RefusedError, UnreachableError
from sluiceway.connectors.nats.session import NO_CONSUMER, NO_STREAM, Session

KEPT_SECONDS = 60.0
"""Seconds after which the server forgets a consumer of ``ordered_consumer`` that nobody uses."""
_BILLION = 1_000_000_000


class MissingStreamError(UnreachableError):
    """There is no such stream now."""


class StreamState(NamedTuple):
    """The state of a stream.

    Attributes:
        first: the sequence of the first message that it has; one after ``last`` if it has none.
        last: the sequence of the newest message that it ever had; 0 before the first one.
        created: when it was created, to the microsecond.
        retention: limits, interest, or workqueue.
    """

    first: int
    last: int
    created: str
    retention: str


class ConsumerState(NamedTuple):
    """The state of a consumer.

    Attributes:
        name: its name.
        config: as the server gives it.
        delivered: the sequence of the last message that it has delivered, or of the one before its begin.
        number: of the last delivery.
        floor: the sequence up to which all is acknowledged.
        pending: the number of messages that it has not delivered.
        unacknowledged: the number of messages that it has delivered and that are not acknowledged.
    """

    name: str
    config: Mapping[str, Any]
    delivered: int
    number: int
    floor: int
    pending: int
    unacknowledged: int

    @property
    def deadline(self) -> float:
        """The seconds that a message may take to be acknowledged."""
        return float(min([self.config.get("ack_wait", 30 * _BILLION), *self.config.get("backoff", ())])) / _BILLION


def stream_state(session: Session, name: str) -> StreamState:
    """Return the state of a stream. Raises MissingStreamError and ConnectError."""
    try:
        answer = session.request(f"STREAM.INFO.{name}")
    except RefusedError as error:
        if error.code == NO_STREAM:
            raise MissingStreamError(f"{error}: {name}") from error
        raise
    state = answer["state"]
    last = int(state["last_seq"])
    first = int(state["first_seq"]) if state["messages"] else last + 1
    return StreamState(first, last, moment(answer["created"]), str(answer["config"].get("retention", "limits")))


def consumer_state(session: Session, stream: str, name: str) -> ConsumerState | None:
    """Return the state of a consumer; None if there is none. Raises MissingStreamError and ConnectError."""
    try:
        return _state(session.request(f"CONSUMER.INFO.{stream}.{name}"))
    except RefusedError as error:
        if error.code == NO_CONSUMER:
            return None
        if error.code == NO_STREAM:
            raise MissingStreamError(f"{error}: {stream}") from error
        raise


def ordered_consumer(session: Session, stream: str, begin: int | datetime, subject: str | None) -> ConsumerState:
    """Create a consumer without acknowledgements that is the session's own, and return its state.

    ``begin`` is the sequence of the first message, or the time from which on messages are read.
    """
    config: dict[str, Any] = {
        "ack_policy": "none",
        "replay_policy": "instant",
        "mem_storage": True,
        "num_replicas": 1,
        "inactive_threshold": int(KEPT_SECONDS * _BILLION),
        **({} if subject is None else {"filter_subject": subject}),
    }
    if isinstance(begin, datetime):
        config |= {"deliver_policy": "by_start_time", "opt_start_time": begin.astimezone(timezone.utc).isoformat()}
    else:
        config |= {"deliver_policy": "by_start_sequence", "opt_start_seq": max(1, begin)}
    return _state(session.request(f"CONSUMER.CREATE.{stream}", {"stream_name": stream, "config": config}))


def durable_consumer(session: Session, stream: str, name: str, config: Mapping[str, Any]) -> ConsumerState:
    """Create a consumer that outlives the session, and return its state."""
    whole = {"durable_name": name, "ack_policy": "explicit", "replay_policy": "instant", **config}
    return _state(session.request(f"CONSUMER.DURABLE.CREATE.{stream}.{name}", {"stream_name": stream, "config": whole}))


def delete_consumer(session: Session, stream: str, name: str) -> None:
    session.request(f"CONSUMER.DELETE.{stream}.{name}")


def streams_of(session: Session, subject: str) -> Sequence[str]:
    """Return the names of the streams that take a subject."""
    return list(session.request("STREAM.NAMES", {"subject": subject}).get("streams") or ())


def moment(text: str) -> str:
    """Return a time such as 2026-01-31T12:00:00.123456789Z to the microsecond, in one form for all servers."""
    head, _, zone = text.partition("+") if "+" in text else text.partition("Z")
    seconds, _, fraction = head.partition(".")
    parsed = datetime.fromisoformat(f"{seconds}.{fraction[:6]:0<6}+{zone or '00:00'}")
    return parsed.astimezone(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _state(answer: Mapping[str, Any]) -> ConsumerState:
    delivered = answer["delivered"]
    return ConsumerState(
        name=str(answer["name"]),
        config=answer["config"],
        delivered=int(delivered["stream_seq"]),
        number=int(delivered["consumer_seq"]),
        floor=int(answer["ack_floor"]["stream_seq"]),
        pending=int(answer.get("num_pending", 0)),
        unacknowledged=int(answer.get("num_ack_pending", 0)),
    )
