"""Begins and ends the runs of a connector's intervals: ledger, closings, and the temporary connector. Runs in Airflow tasks.

A run that dies anywhere in between is continued by its next try: the ledger says which attempt it was, and that attempt's
connector has its own offsets. ``storage.intervals`` has the rule for what belongs to an interval. The driver of a connector that
reads a log in its order finds the interval in the ledger: it is the one that is running.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from sluiceway.api import TopicPartition
from sluiceway.backoff import Backoff
from sluiceway.config.connector import TOPICS_REGEX, overrides, sink_topics
from sluiceway.config.consumer_group import sink_group
from sluiceway.config.intervals import COLUMN, POSITIONS, RERUNS, Interval, IntervalRun, reruns_of
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import BadRequestError, ConnectError, NotFoundError
from sluiceway.herder import Herder
from sluiceway.java.regex import compile_java
from sluiceway.kafka.admin import beginning_offsets, end_offsets, offsets_at, partition_counts
from sluiceway.kafka.clients import AdminClient, admin_client
from sluiceway.kafka.group_offsets import ConsumerGroups
from sluiceway.kafka.windows import Window, decode_windows
from sluiceway.provider.dag_bundle.dag_keys import is_sink_config
from sluiceway.provider.driver.interval_connector import (
    IntervalConnector,
    MovedBefore,
    NotClosed,
    Outcome,
    WantedInterval,
    connector_name,
    has_own_group,
)
from sluiceway.provider.driver.warm_batch import forget
from sluiceway.provider.progress.probe_request import resolve_client_keys
from sluiceway.runtime.sink.subscription import INTERNAL_TOPICS
from sluiceway.storage.factory import Stores, open_stores
from sluiceway.storage.interval_ledger import IntervalLedger, read_ledger
from sluiceway.storage.intervals import (
    Counts,
    IntervalEntry,
    IntervalState,
    Ledger,
    Positions,
    Update,
    asked_for,
    begun,
    closing_update,
    closings,
    forgotten,
    in_order,
    introduced,
    of_same_topics,
    windows,
    with_new_partitions,
)
from sluiceway.storage.model import TargetState
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore

log = logging.getLogger(__name__)

_MEMBER_SECONDS = 60.0
_DRIVER_MS = 60_000  # from the begin of a run until its driver has the connector's lease


class IntervalRuns:
    """The intervals of a cluster's connectors. Every method raises ConnectError if Kafka does not answer."""

    def __init__(self, worker: WorkerConfig) -> None:
        self._worker = worker

    def begin(self, wanted: WantedInterval) -> Outcome:
        """Create and start the connector of a run's interval, unless it is moved already or may still get records.

        Repeatable: a retry continues with the offsets of the previous try.
        """
        with self._opened(wanted.connector) as (stores, herder, ledger):
            decided = ledger.change(lambda known: self._decided(wanted, known, herder, stores))
            if isinstance(decided, IntervalConnector):
                decided = decided.for_worker(self._worker)
                if (before := decided.before) is not None:  # whose run may have died before it could delete it
                    self._delete(before, stores, herder)
                self._start(decided, stores, herder)
            elif isinstance(decided, MovedBefore):
                self._delete(connector_name(wanted.connector, decided.entry), stores, herder)
            return decided

    def moves(self, name: str, run_id: str) -> bool:
        """Return whether a DAG run moves an interval now with a connector that reads a log."""
        with open_stores(self._worker, brief=True) as stores:
            running = read_ledger(stores.offsets, name).running
        return running is not None and run_id in running.runs

    def leave(self, name: str) -> None:
        """Note that a connector which reads a log is not run for an interval that a run has left behind.

        Its driver would end there.
        """
        with self._opened(name) as (_stores, _herder, ledger):
            if ledger.read().running is not None:
                ledger.change(lambda known: (None, _failed(known.entries.values(), "a later run has moved what was available")))

    def end(self, name: str, records: int | None) -> IntervalEntry:
        """Note in the ledger that a connector has moved its interval, and delete it if it is temporary; return the entry.

        Args:
            name: the name of the connector that has moved it.
            records: how many records a source has moved; a sink's tasks have counted them.
        """
        with self._run_of(name) as (run, config, stores, herder, ledger):
            is_sink = is_sink_config(config)
            counts = self._moved(name, run, config) if is_sink else Counts(records or 0)
            known = records is not None or is_sink

            # A later attempt finds the same late records again, which the other intervals have by then.
            left = _left(config, counts.left) if run.attempt == 1 else ()

            def decide(state: Ledger) -> tuple[IntervalEntry, Sequence[Update]]:
                entry = state.entries.get(run.interval.start) or IntervalEntry(run.interval, IntervalState.RUNNING, run.attempt)
                if entry.attempt != run.attempt:
                    return entry, []
                done = replace(
                    entry,
                    state=IntervalState.DONE,
                    records=counts.records if known else None,
                    late=counts.late if is_sink else None,
                    at_least=counts.at_least or (entry.at_least and not is_sink),
                    error=None,
                    updated=_now(),
                )
                others = (state.entries.get(start) for start in left)
                return done, [
                    done.update(),
                    *(replace(each, rerun=each.rerun + 1).update() for each in others if each is not None),
                ]

            done = ledger.change(decide)
            if name != run.connector:
                for topic in stores.status.topics(name):
                    stores.status.put_topic(run.connector, 0, topic)
                self._delete(name, stores, herder)
            return done

    def fail(self, name: str, error: str) -> None:
        """Note in the ledger that a run of an interval has failed. Its connector stays for the next try."""
        with self._run_of(name) as (run, _config, _stores, _herder, ledger):

            def decide(state: Ledger) -> tuple[None, Sequence[Update]]:
                entry = state.entries.get(run.interval.start)
                return None, _failed([entry] if entry else [], error)

            ledger.change(decide)

    def _decided(self, wanted: WantedInterval, known: Ledger, herder: Herder, stores: Stores) -> tuple[Outcome, Sequence[Update]]:
        """Return what to do, by the newest state of the ledger, and what to write to the ledger."""
        interval = wanted.given(known)
        if isinstance(interval, IntervalEntry):
            return MovedBefore(interval), ()
        entry = introduced(known, interval, wanted.rerun_within, wanted.column)
        if entry.state is IntervalState.DONE and (before := _moved_before(wanted, entry, stores)) is not None:
            return before, ()
        if wanted.in_order and (busy := _begun_by_another(wanted, interval, known)) is not None:
            return busy, ()
        over_at = interval.end + wanted.settings.lateness
        read: Mapping[TopicPartition, Window] | None = None
        changes: list[Update] = []
        if wanted.sink:
            with_closings = self._closed(wanted, interval, known, herder, entry)
            if with_closings is None:
                return NotClosed(interval, over_at), ()
            read, changes, deleted = with_closings
            if deleted:
                _say_deleted(wanted.connector, interval, deleted, again=entry.state is IntervalState.DONE)
        elif _now() < over_at:
            return NotClosed(interval, over_at), ()
        if wanted.in_order:  # the driver moves the one interval that is running
            others = (each for each in known.entries.values() if each is not entry)
            changes += _failed(others, "the run has ended before it had moved the interval")
        new = begun(entry, interval, wanted.run_id, _now(), read, wanted.column)
        return IntervalConnector.plan(wanted, new, read or {}, known.left_by(new)), [*changes, new.update(), *forgotten(known)]

    def _closed(
        self, wanted: WantedInterval, interval: Interval, known: Ledger, herder: Herder, entry: IntervalEntry
    ) -> tuple[dict[TopicPartition, Window], list[Update], list[TopicPartition]] | None:
        """Return what a sink reads, new closings of the interval's ends, and the partitions that retention has deleted from.

        None if the end of the interval cannot be closed yet.
        """
        config = resolve_client_keys(self._worker, wanted.config)
        admin = admin_client(self._worker, overrides(config, "admin"))
        topics, partitions = _partitions(admin, config, herder.topics(wanted.connector))
        asked = asked_for(topics, is_pattern=bool(config.get(TOPICS_REGEX)))
        now, ends = _now(), end_offsets(admin, partitions, read_committed=False)
        known_closings = {boundary: of_same_topics(found, ends) for boundary, found in known.closings.items()}
        decided: list[Positions] = []
        changes: list[Update] = []
        for boundary in (interval.start, interval.end):
            positions: Positions | None = known_closings.get(boundary)
            if positions is None or any(partition not in positions for partition in partitions):
                over_at = boundary + wanted.settings.lateness
                # A record from the future says nothing about those before it.
                after = offsets_at(admin, partitions, over_at, latest=now)
                found = closings(after, ends, is_over=now >= over_at)
                if found is None:
                    return None
                positions = in_order(boundary, {**asked, **with_new_partitions(positions or {}, found)}, known_closings)
                known_closings[boundary] = dict(positions)
                changes.append(closing_update(boundary, positions))
            decided.append({partition: positions[partition] for partition in partitions})
        start, end = decided
        earlier, left = of_same_topics(entry.starts, ends), Ledger(known.entries, known_closings).left_to(entry)
        read = windows(offsets_at(admin, partitions, interval.start), start, end, earlier, left)
        begins, gone = beginning_offsets(admin, partitions), entry.ends  # with the topic, if it was created again
        deleted = [
            each for each in partitions if gone.get(each, 0) > ends[each] or read[each].start < min(begins[each], read[each].end)
        ]
        return read, changes, deleted

    def _start(self, connector: IntervalConnector, stores: Stores, herder: Herder) -> None:
        if not connector.is_temporary:
            return
        entry = stores.config.snapshot().entry(connector.name)
        if entry is None:
            herder.create(connector.name, connector.config, TargetState.STOPPED)
        else:
            # What it reads was decided by its first try; what was wrong in its config may have been mended since.
            kept = {key: value for key, value in (entry.config or {}).items() if key in (POSITIONS, RERUNS)}
            if (wanted := {**connector.config, **kept}) != dict(entry.config or {}):
                herder.put_config(connector.name, wanted)
        if connector.starts:  # empty for a source, and while none of its topics exists
            groups, group = self._group(connector.name, connector.config)
            known = groups.offsets(group)  # none yet, or Kafka has forgotten the group since the last try
            missing = {place: start for place, start in connector.starts.items() if place not in known}
            if missing:
                groups.alter(group, missing)
        herder.resume(connector.name)

    def _group(self, name: str, config: Mapping[str, str]) -> tuple[ConsumerGroups, str]:
        """Return the consumer groups of a sink's cluster, and the sink's own one."""
        client = resolve_client_keys(self._worker, config)
        return ConsumerGroups(self._worker, overrides(client, "admin")), sink_group(self._worker, name, client)

    def _moved(self, name: str, run: IntervalRun, config: Mapping[str, str]) -> Counts:
        """Return what a sink's tasks have counted.

        Raises ConnectError unless they have committed all of the interval: a run also ends if its driver is told to.
        """
        groups, group = self._group(name, config)
        committed = groups.committed(group)
        for (topic, partition), window in decode_windows(config.get(POSITIONS, "{}")).items():
            done, _ = committed.get(TopicPartition(topic, partition), (-1, ""))
            if window.start < window.last and done < window.last:
                place = f"{topic}-{partition}"
                raise ConnectError(
                    f"Connector {name} has ended before the end of interval {run.interval}: {place} is committed up to offset "
                    f"{done} of {window.last}. The next try continues there. If nobody has ended it, its log says why."
                )
        total = Counts()
        for _, metadata in committed.values():
            total = total.plus(Counts.of(metadata))
        return total

    def _delete(self, name: str, stores: Stores, herder: Herder) -> None:
        entry = stores.config.snapshot().entry(name)
        if entry is None:
            return
        herder.stop(name)
        config = entry.config or {}
        shared = is_sink_config(config) and not has_own_group(self._worker, name, config)
        if not shared and herder.offsets(name):
            _reset(name, herder)
        herder.delete(name)
        if entry.application:
            forget(self._worker, name)

    @contextmanager
    def _opened(self, connector: str) -> Iterator[tuple[Stores, Herder, IntervalLedger]]:
        with open_stores(self._worker, brief=True) as stores:
            assert isinstance(stores.offsets, KafkaOffsetBackingStore)  # noqa: S101 (distributed mode)
            herder = Herder(self._worker, stores.config, stores.status, stores.offsets)
            yield stores, herder, IntervalLedger(self._worker, connector, stores.offsets)

    @contextmanager
    def _run_of(self, name: str) -> Iterator[tuple[IntervalRun, Mapping[str, str], Stores, Herder, IntervalLedger]]:
        """Open the stores for the run that a connector moves an interval for. Raises NotFoundError if there is none."""
        with open_stores(self._worker, brief=True) as stores:
            entry = stores.config.snapshot().entry(name)
            config = (entry.config if entry else None) or {}
            run = IntervalRun.of(config)
            if run is None and (running := read_ledger(stores.offsets, name).running) is not None:
                run = IntervalRun(name, running.interval, running.attempt)
            if run is None:
                raise NotFoundError(f"Connector {name}, which moves an interval, not found")
            assert isinstance(stores.offsets, KafkaOffsetBackingStore)  # noqa: S101 (distributed mode)
            herder = Herder(self._worker, stores.config, stores.status, stores.offsets)
            yield run, config, stores, herder, IntervalLedger(self._worker, run.connector, stores.offsets)


def _partitions(
    admin: AdminClient, config: Mapping[str, str], used: Collection[str]
) -> tuple[Collection[str], list[TopicPartition]]:
    """Return a sink's topics, and the partitions of those that exist."""
    counts = partition_counts(admin)
    topics = topics_read(config, used, counts)
    return topics, [TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))]


def topics_read(config: Mapping[str, str], used: Collection[str], known: Collection[str]) -> Collection[str]:
    """Return the topics that a sink reads, also those that it has not used yet, given those that it has and the cluster's."""
    pattern = config.get(TOPICS_REGEX, "").strip()
    if not pattern:
        return sink_topics(config, used)
    matches = compile_java(pattern).matches
    return [topic for topic in known if topic not in INTERNAL_TOPICS and matches(topic)]


def _left(config: Mapping[str, str], bits: int) -> list[int]:
    """Return the starts of the intervals that late records were left to (``Counts.left``)."""
    return [interval.start for number, interval in enumerate(reruns_of(config)) if bits >> number & 1]


def _moved_before(wanted: WantedInterval, entry: IntervalEntry, stores: Stores) -> MovedBefore | None:
    """Return that a run does not move an interval again; None if it does. Raises BadRequestError if it should, and cannot."""
    repeats = wanted.repeats(entry)
    if entry.rerun and not repeats:
        raise BadRequestError(
            f"Late records wait until interval {entry.interval} of connector {wanted.connector} is moved again, which its config "
            f"does not allow any more. Set {COLUMN} as it was when the interval was moved: {entry.column}."
        )
    leftover = stores.config.snapshot().entry(connector_name(wanted.connector, entry)) is not None
    return MovedBefore(entry, by_last_try=leftover) if (leftover and not entry.rerun) or not repeats else None


def _begun_by_another(wanted: WantedInterval, interval: Interval, known: Ledger) -> NotClosed | None:
    """Return until when to wait for the driver of a run that has begun another interval: its lease tells whether it lives."""
    other = known.running
    if other is None or wanted.run_id in other.runs or _now() >= other.updated + _DRIVER_MS:
        return None
    return NotClosed(interval, other.updated + _DRIVER_MS, other.runs[-1] if other.runs else None)


def _failed(entries: Iterable[IntervalEntry], error: str) -> list[Update]:
    """Return the records of those of these intervals as failed that no run moves any more."""
    running = (each for each in entries if each.state is IntervalState.RUNNING)
    return [replace(each, state=IntervalState.FAILED, error=error, updated=_now()).update() for each in running]


def _say_deleted(connector: str, interval: Interval, deleted: Sequence[TopicPartition], *, again: bool) -> None:
    """Log that records were deleted before they were moved. Raises BadRequestError if moving again would replace them."""
    names = ", ".join(f"{topic}-{partition}" for topic, partition in deleted[:5]) + (", ..." if len(deleted) > 5 else "")
    if again:
        raise BadRequestError(
            f"Interval {interval} of connector {connector} cannot be moved again: records of {names} do not exist any more (see "
            "the topic's retention). What was written of it before stays as it is."
        )
    log.warning("[%s|worker] Records of interval %s may have been deleted before this run: %s", connector, interval, names)


def _reset(name: str, herder: Herder) -> None:
    """Remove a temporary connector's offsets. A killed task stays a member of its consumer group until its session is over."""
    deadline, backoff = time.monotonic() + _MEMBER_SECONDS, Backoff(0.1, 2.0)
    while True:
        try:
            herder.reset_offsets(name)
            return
        except ConnectError as error:
            if time.monotonic() > deadline:
                log.warning("[%s|worker] The consumer group of the ended run stays until Kafka forgets it: %s", name, error)
                return
            time.sleep(backoff.next())


def _now() -> int:
    return int(time.time() * 1000)
