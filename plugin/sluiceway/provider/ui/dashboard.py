"""What the page can ask for: the connectors that a user may see, one of them in full, its dead letters. API server."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from sluiceway.config.connector import CONNECTOR_CLASS, DLQ_TOPIC
from sluiceway.config.definition import Type
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class
from sluiceway.errors import ConfigError, NotFoundError
from sluiceway.herder import Herder
from sluiceway.provider.dag_bundle.dag_keys import dag_of
from sluiceway.provider.progress.measures import Measure, Reading
from sluiceway.provider.progress.subjects import Subject, subjects
from sluiceway.provider.ui import views
from sluiceway.provider.ui.sampler import Sampler
from sluiceway.storage.interfaces import ConfigBackingStore
from sluiceway.storage.model import ConnectorEntry

_LETTERS = 10
_COMMIT_SLACK = 15.0  # seconds that a sink's commit may be late


class Probe(Protocol):
    """Asks Kafka how far connectors are (``sluiceway.provider.progress.probe.KafkaProbe``)."""

    def read(self, subjects: list[Subject]) -> Reading: ...


class Dashboard:
    """One for each API-server process. Thread-safe; every method raises ConnectError where Kafka does not answer."""

    def __init__(self, worker: WorkerConfig, herder: Herder, config: ConfigBackingStore, probe: Probe) -> None:
        self._worker = worker
        self._herder = herder
        self._config = config
        spread = worker.number("offset.flush.interval.ms") / 1000 + _COMMIT_SLACK
        self.sampler = Sampler(lambda: subjects(config.snapshot(), worker, herder.topics), probe.read, spread=spread)

    def start(self) -> None:
        self.sampler.start()

    def stop(self) -> None:
        self.sampler.stop()

    def configs(self) -> dict[str, Mapping[str, str]]:
        """Return the configs of all connectors by name, sorted."""
        return self._herder.configs()

    def overview(self, names: Iterable[str], editable: Collection[str], dag: str | None = None) -> dict[str, Any]:
        """Return the list of those connectors, only the ones that a DAG runs if one is given. Waits for Kafka 3 s at most."""
        look = self.sampler.fresh()
        entries = self._config.snapshot().connectors
        shown = [
            self._row(entries[name], look.measures.get(name), name in editable)
            for name in names
            if name in entries and (dag is None or _dag(entries[name]) == dag)
        ]
        return {"now": time.time(), "measured": look.at, "problem": look.problem, "connectors": [each for each in shown if each]}

    def history(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the last hour of those connectors, by name."""
        now = time.time()
        return {name: views.history(self.sampler.series(name), now) for name in names}

    def connector(self, name: str, editable: bool) -> dict[str, Any]:
        """Return all of one connector; raises NotFoundError."""
        look = self.sampler.fresh()
        entry = self._entry(name)
        measure = look.measures.get(name, Measure())
        detail = views.details(
            entry, self._herder.status(name), measure, self._herder.topics(name), password_keys(entry.config or {})
        )
        series = self.sampler.series(name)
        return {
            **(self._row(entry, measure, editable) or {}),
            **detail,
            **views.history(series, time.time()),
            "problem": look.problem,
        }

    def dead_letters(self, name: str) -> dict[str, Any]:
        """Return the newest dead letters of a connector, read from Kafka now; raises NotFoundError."""
        from sluiceway.kafka.dead_letter_topic import DeadLetterTopic

        topic = (self._entry(name).config or {}).get(DLQ_TOPIC, "").strip()
        if not topic:
            return views.letters(None, None, ())
        try:
            letters = DeadLetterTopic(self._worker, topic, name)
        except NotFoundError:  # it is made with the first dead letter
            return views.letters(topic, 0, ())
        return views.letters(topic, letters.count(), letters.newest(_LETTERS))

    def _entry(self, name: str) -> ConnectorEntry:
        entry = self._config.snapshot().entry(name)
        if entry is None:
            raise NotFoundError(f"Connector {name} not found")
        return entry

    def _row(self, entry: ConnectorEntry, measure: Measure | None, editable: bool) -> dict[str, Any] | None:
        try:
            status = self._herder.status(entry.name)
        except NotFoundError:  # deleted in this moment
            return None
        series = self.sampler.series(entry.name)
        return views.row(entry, status, measure or Measure(), series, dag=_dag(entry), may_edit=editable)


def password_keys(config: Mapping[str, str]) -> set[str]:
    """Return the keys that the connector's class declares as passwords; none if it is not installed here."""
    try:
        declared = connector_class(config.get(CONNECTOR_CLASS, "")).config_def()
    except (NotFoundError, ConfigError):
        return set()
    return {key.name for key in declared if key.type is Type.PASSWORD}


def _dag(entry: ConnectorEntry) -> str | None:
    try:
        return dag_of(entry.name, entry.config or {})
    except ConfigError:  # its name is too long for a DAG
        return None
