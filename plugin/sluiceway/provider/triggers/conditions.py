"""What sensors wait for, as values that travel to the triggerer and back. Pure but for the look that ``check`` is handed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

from sluiceway.errors import NotFoundError
from sluiceway.provider.progress.cluster_view import ConnectorStates, DriverSeen
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.storage.model import ConnectorEntry, State, TargetState


class View(Protocol):
    """What conditions ask of a cluster (``ClusterView``)."""

    def entry(self, name: str) -> ConnectorEntry | None: ...

    def states(self, name: str) -> ConnectorStates: ...

    def driver(self, name: str) -> DriverSeen: ...

    def progress(self, name: str) -> ConnectorProgress: ...

    def records_since(self, topic: str, milliseconds: int) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a condition holds, what was seen, and whether the wait is to end as a failure."""

    met: bool
    seen: str
    failed: bool = False


class Condition(Protocol):
    kind: ClassVar[str]

    def check(self, view: View) -> Answer:
        """Look once; raises ConnectError when Kafka does not answer."""


@dataclass(frozen=True)
class StateCondition:
    """A connector, and with ``tasks`` each of its tasks, is in one of some states."""

    kind: ClassVar[str] = "state"
    connector: str
    states: Sequence[str] = ("RUNNING",)
    tasks: bool = True
    fail_on: Sequence[str] = ()

    def check(self, view: View) -> Answer:
        try:
            seen = view.states(self.connector)
        except NotFoundError:
            return Answer(False, "the connector does not exist yet")
        failed = bool(seen.states() & {State(each) for each in self.fail_on})
        met = not failed and seen.is_in({State(each) for each in self.states}, tasks=self.tasks)
        return Answer(met, str(seen), failed)


@dataclass(frozen=True)
class LagCondition:
    """A sink has at most so many records of its topics left to commit."""

    kind: ClassVar[str] = "lag"
    connector: str
    at_most: int = 0

    def check(self, view: View) -> Answer:
        try:
            lag = view.progress(self.connector).lag
        except NotFoundError:
            return Answer(False, "the connector does not exist yet")
        if lag is None:
            return Answer(False, "it is a source: Kafka does not know how much its other end has left", failed=True)
        return Answer(lag <= self.at_most, f"lag {lag}, to be at most {self.at_most}")


@dataclass(frozen=True)
class OffsetsCondition:
    """Each partition that is named has an offset whose fields have reached those that are named.

    ``offsets`` in the form of ``GET /connectors/<name>/offsets``: a list of ``{"partition": .., "offset": ..}``.
    """

    kind: ClassVar[str] = "offsets"
    connector: str
    offsets: Sequence[Mapping[str, Any]] = ()

    def check(self, view: View) -> Answer:
        try:
            stored = {_key(partition): offset or {} for partition, offset in view.progress(self.connector).offsets}
        except NotFoundError:
            return Answer(False, "the connector does not exist yet")
        waiting = [each for each in self.offsets if not _reached(stored.get(_key(each["partition"]), {}), each["offset"])]
        if not waiting:
            return Answer(True, f"all of {len(self.offsets)} partition(s) are there")
        first = waiting[0]["partition"]
        return Answer(
            False,
            f"{len(waiting)} partition(s) are not there yet; {json.dumps(first)} is at {stored.get(_key(first)) or 'nothing'}",
        )


@dataclass(frozen=True)
class RecordsCondition:
    """A topic has records from a time on (milliseconds since the epoch), at least ``count`` of them."""

    kind: ClassVar[str] = "records"
    topic: str
    since: int
    count: int = 1

    def check(self, view: View) -> Answer:
        found = view.records_since(self.topic, self.since)
        if found is None:
            return Answer(False, f"there is no topic {self.topic} yet")
        return Answer(found >= self.count, f"topic {self.topic} has {found} record(s) since then, to be at least {self.count}")


@dataclass(frozen=True)
class RestCondition:
    """Nobody runs the connector any more; or it is to rest, or is gone.

    What a task waits for whose driver is elsewhere: in a cluster, or in an application that connectors share.
    ``generation`` is that of the driver before: a newer one that does not live any more has ended. Until ``patience`` (seconds
    since the epoch) a driver may take to appear. ``hosted``: one that goes is started again by others, so that is no end.
    """

    kind: ClassVar[str] = "rest"
    connector: str
    generation: int = 0
    patience: float = 0.0
    hosted: bool = False

    def check(self, view: View) -> Answer:
        entry = view.entry(self.connector)
        if entry is None:
            return Answer(True, "the connector was deleted")
        driver = view.driver(self.connector)
        if driver.lives:
            return Answer(False, f"it runs as generation {driver.generation}")
        if entry.target_state is not TargetState.STARTED:
            return Answer(True, f"it rests, as it is to be {entry.target_state.value}")
        if not self.hosted and (driver.generation > self.generation or time.time() > self.patience):
            return Answer(True, "its driver is gone")
        return Answer(False, "waiting for its driver")


_KINDS: dict[str, type[Any]] = {
    each.kind: each for each in (StateCondition, LagCondition, OffsetsCondition, RecordsCondition, RestCondition)
}


def to_dict(condition: Condition) -> dict[str, Any]:
    """Return a condition as JSON can hold it."""
    return {"kind": condition.kind, **json.loads(json.dumps(asdict(condition)))}  # type: ignore[call-overload]


def from_dict(fields: Mapping[str, Any]) -> Condition:
    """Return the condition that ``to_dict`` wrote; raises KeyError for a kind that there is not."""
    made: Condition = _KINDS[fields["kind"]](**{name: value for name, value in fields.items() if name != "kind"})
    return made


def _key(partition: Mapping[str, Any] | None) -> str:
    return json.dumps(partition, sort_keys=True)


def _reached(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(name in stored and _at_least(stored[name], value) for name, value in wanted.items())


def _at_least(have: Any, want: Any) -> bool:
    try:
        return bool(have >= want)
    except TypeError:  # a text and a number, or nothing at all
        return bool(have == want)
