"""The conditions that sensors and deferred operators wait for, and their JSON form for the triggerer.

No I/O of their own: ``check`` reads through the view that it is given.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol

from sluiceway.config.intervals import Interval
from sluiceway.errors import NotFoundError
from sluiceway.herder.intervals import reads_in_order
from sluiceway.herder.moved import is_moving
from sluiceway.provider.progress.cluster_view import ConnectorStates, DriverSeen
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.storage.intervals import Ledger
from sluiceway.storage.model import ConnectorEntry, State, TargetState
from sluiceway.worker.batch_messages import BatchReport, BatchState

_NOT_CREATED = "the connector does not exist yet"
_TOO_LONG = "not ended within the task's execution_timeout"


class View(Protocol):
    """The reads of a cluster that conditions need (``ClusterView``)."""

    def entry(self, name: str) -> ConnectorEntry | None: ...

    def states(self, name: str) -> ConnectorStates: ...

    def driver(self, name: str) -> DriverSeen: ...

    def batch(self, name: str) -> tuple[str | None, BatchReport | None]: ...

    def progress(self, name: str) -> ConnectorProgress: ...

    def records_since(self, topic: str, milliseconds: int, until: int | None = None) -> int | None: ...

    def intervals(self, name: str) -> Ledger: ...


@dataclass(frozen=True, slots=True)
class ConditionResult:
    """The result of one check."""

    met: bool
    seen: str
    """The state that was seen, for the log."""
    failed: bool = False
    """Whether the condition can no longer be met, so that the wait must fail."""


class Condition(Protocol):
    """A condition on a Connect cluster. ``kind`` and the field names are stored in Airflow's database: do not rename them."""

    kind: ClassVar[str]

    def check(self, view: View) -> ConditionResult:
        """Check once; raises ConnectError if Kafka does not answer."""


@dataclass(frozen=True)
class CreatedCondition:
    """The connector exists."""

    kind: ClassVar[str] = "created"
    connector: str

    def check(self, view: View) -> ConditionResult:
        exists = view.entry(self.connector) is not None
        return ConditionResult(exists, "the connector exists" if exists else _NOT_CREATED)


@dataclass(frozen=True)
class StateCondition:
    """The connector, and with ``tasks`` each of its tasks, is in one of ``states``. Fails on a state in ``fail_on``."""

    kind: ClassVar[str] = "state"
    connector: str
    states: Sequence[str] = ("RUNNING",)
    tasks: bool = True
    fail_on: Sequence[str] = ()

    def check(self, view: View) -> ConditionResult:
        try:
            seen = view.states(self.connector)
        except NotFoundError:
            return ConditionResult(False, _NOT_CREATED)
        failed = bool(seen.states() & {State(each) for each in self.fail_on})
        met = not failed and seen.is_in({State(each) for each in self.states}, tasks=self.tasks)
        return ConditionResult(met, str(seen), failed)


@dataclass(frozen=True)
class LagCondition:
    """A sink has at most ``at_most`` records of its topics left to commit."""

    kind: ClassVar[str] = "lag"
    connector: str
    at_most: int = 0

    def check(self, view: View) -> ConditionResult:
        try:
            lag = view.progress(self.connector).lag
        except NotFoundError:
            return ConditionResult(False, _NOT_CREATED)
        if lag is None:
            why = "a source has no lag: Kafka does not know how many records are left to read"
            return ConditionResult(False, why, failed=True)
        return ConditionResult(lag <= self.at_most, f"lag {lag}, waiting for at most {self.at_most}")


@dataclass(frozen=True)
class OffsetsCondition:
    """The stored offset of each named partition has reached the named value, field by field.

    ``offsets`` is a list of ``{"partition": .., "offset": ..}``, as in ``GET /connectors/<name>/offsets``.
    """

    kind: ClassVar[str] = "offsets"
    connector: str
    offsets: Sequence[Mapping[str, Any]] = ()

    def check(self, view: View) -> ConditionResult:
        try:
            stored = {_key(partition): offset or {} for partition, offset in view.progress(self.connector).offsets}
        except NotFoundError:
            return ConditionResult(False, _NOT_CREATED)
        behind = [each for each in self.offsets if not _reached(stored.get(_key(each["partition"]), {}), each["offset"])]
        if not behind:
            return ConditionResult(True, f"all {len(self.offsets)} partition(s) have reached their offsets")
        first = behind[0]["partition"]
        offset = stored.get(_key(first))
        at = f"is at {offset}" if offset else "has no offset"
        return ConditionResult(False, f"{len(behind)} partition(s) have not reached their offsets; {json.dumps(first)} {at}")


@dataclass(frozen=True)
class RecordsCondition:
    """A topic has at least ``count`` records of the times from ``since`` to before ``until`` (milliseconds since the epoch)."""

    kind: ClassVar[str] = "records"
    topic: str
    since: int
    count: int = 1
    until: int | None = None

    def check(self, view: View) -> ConditionResult:
        found = view.records_since(self.topic, self.since, self.until)
        if found is None:
            return ConditionResult(False, f"topic {self.topic} does not exist yet")
        when = "since then" if self.until is None else f"of {Interval(self.since, self.until)}"
        seen = f"topic {self.topic} has {found} record(s) {when}, waiting for at least {self.count}"
        return ConditionResult(found >= self.count, seen)


@dataclass(frozen=True)
class IntervalCondition:
    """Runs of a connector have moved all records of the times from ``start`` to before ``end`` (milliseconds since the epoch)."""

    kind: ClassVar[str] = "interval"
    connector: str
    start: int
    end: int

    def check(self, view: View) -> ConditionResult:
        entry = view.entry(self.connector)
        if entry is None:
            return ConditionResult(False, _NOT_CREATED)
        known, wanted = view.intervals(self.connector), Interval(self.start, self.end)
        left = None if reads_in_order(entry.config or {}) and known.moved_behind(self.end) else known.first_left(wanted)
        if left is None:
            return ConditionResult(True, f"interval {wanted} was moved")
        begun = [each for each in known.entries.values() if each.interval.start < left.end and each.interval.end > left.start]
        states = ", ".join(sorted({each.state.value for each in begun})) or "no run has begun it"
        return ConditionResult(False, f"{left} was not moved yet ({states})")


@dataclass(frozen=True)
class DriverEndedCondition:
    """No driver runs the connector, and none will start; or the connector is paused, stopped or deleted.

    For a task whose driver is not its child: it runs in a cluster, or in an application that connectors share.

    Args:
        connector: the connector's name.
        generation: the generation of the driver before. A higher generation that does not live has ended.
        patience: until when the task's own driver may take to appear, in seconds since the epoch; 0 if it has none.
        hosted: whether a shared application runs the connector. Its own task starts it again, so its end is not the
            connector's end.
        deadline: when the task's execution_timeout is over, in seconds since the epoch.
    """

    kind: ClassVar[str] = "rest"  # as 0.1.0 stored it
    connector: str
    generation: int = 0
    patience: float = 0.0
    hosted: bool = False
    deadline: float | None = None

    @property
    def own(self) -> bool:
        """Return whether the driver is the task's own, so that it must end with the task."""
        return self.patience > 0

    def check(self, view: View) -> ConditionResult:
        entry = view.entry(self.connector)
        if entry is None:
            return ConditionResult(True, "the connector was deleted")
        driver = view.driver(self.connector)
        if self.deadline is not None and time.time() > self.deadline:
            left = "" if self.own else ". A driver that runs is left alone"
            return ConditionResult(False, f"{_TOO_LONG}{left}", failed=True)
        if driver.lives:
            return ConditionResult(False, f"a driver runs, generation {driver.generation}")
        if is_moving(entry):
            return ConditionResult(False, "the connector is stopped while it moves")
        if entry.target_state is not TargetState.STARTED:
            return ConditionResult(True, f"no driver runs, and the target state is {entry.target_state.value}")
        if self.hosted and entry.application is None:
            return ConditionResult(True, "the connector has left the shared application")
        if not self.hosted and (driver.generation > self.generation or time.time() > self.patience):
            return ConditionResult(True, "the driver has ended")
        return ConditionResult(False, "waiting for a driver")


@dataclass(frozen=True)
class BatchEndedCondition:
    """A shared application has ended a micro-batch, or it need not: the connector is paused, stopped, deleted, or taken over.

    Fails if no driver of the application serves the connector, or if the deadline is over.

    Args:
        connector: the connector's name.
        application: the shared application.
        batch: the batch's id. Ids sort by the time of their request.
        since: the time of the request, in seconds since the epoch.
        patience: how many seconds the application may be without a driver.
        deadline: when the task's execution_timeout is over, in seconds since the epoch.
    """

    kind: ClassVar[str] = "batch"
    connector: str
    application: str
    batch: str
    since: float
    patience: float
    deadline: float | None = None

    def check(self, view: View) -> ConditionResult:
        entry = view.entry(self.connector)
        if entry is None:
            return ConditionResult(True, "the connector was deleted")
        requested, report = view.batch(self.connector)
        if report is not None and report.id == self.batch and report.state is not BatchState.RUNNING:
            return ConditionResult(True, f"the micro-batch has ended: {report.state.value}")
        if requested is not None and requested > self.batch:
            return ConditionResult(True, "another task has requested a micro-batch of the connector")
        if self.deadline is not None and time.time() > self.deadline:
            return ConditionResult(False, f"the micro-batch: {_TOO_LONG}", failed=True)
        driver = view.driver(self.connector)
        if driver.lives:
            return ConditionResult(False, f"application {self.application} runs it, generation {driver.generation}")
        if entry.target_state is not TargetState.STARTED:
            return ConditionResult(True, f"no driver runs, and the target state is {entry.target_state.value}")
        if time.time() > max(self.since, driver.at) + self.patience:
            return ConditionResult(
                False,
                f"application {self.application} has not run it for {self.patience:g} s. Look at the application's DAG run: "
                "it may be paused, wait for a slot, or fail. Without sluiceway.application the connector starts Spark by itself",
                failed=True,
            )
        return ConditionResult(False, f"waiting for application {self.application}")


_CONDITIONS = (
    CreatedCondition,
    StateCondition,
    LagCondition,
    OffsetsCondition,
    RecordsCondition,
    IntervalCondition,
    DriverEndedCondition,
    BatchEndedCondition,
)
_KINDS: dict[str, type[Any]] = {each.kind: each for each in _CONDITIONS}


def to_dict(condition: Condition) -> dict[str, Any]:
    """Return a condition as a dict that JSON can hold: its kind, and its fields but those that are None.

    So a triggerer that has not been upgraded yet can read a condition that uses no newer field.
    """
    values = {field.name: getattr(condition, field.name) for field in fields(_KINDS[condition.kind])}
    given = {name: value for name, value in values.items() if value is not None}
    return {"kind": condition.kind, **json.loads(json.dumps(given))}


def from_dict(stored: Mapping[str, Any]) -> Condition:
    """Return the condition for a dict of ``to_dict``, also one that 0.1.0 wrote; raises KeyError for an unknown kind."""
    condition: Condition = _KINDS[stored["kind"]](**{name: value for name, value in stored.items() if name != "kind"})
    return condition


def _key(partition: Mapping[str, Any] | None) -> str:
    return json.dumps(partition, sort_keys=True)


def _reached(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(name in stored and _at_least(stored[name], value) for name, value in wanted.items())


def _at_least(have: Any, want: Any) -> bool:
    try:
        return bool(have >= want)
    except TypeError:  # a string and a number, or null
        return bool(have == want)
