"""Collects what the page shows: a list of connectors, the details of one, its DLQ records."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from sluiceway.config.connector import DLQ_TOPIC
from sluiceway.config.worker import MIGRATE_WITH, WorkerConfig
from sluiceway.errors import ConfigError, NotFoundError
from sluiceway.herder import Herder
from sluiceway.herder.discretion import discreet_status
from sluiceway.herder.overview import Overview, PerConnector
from sluiceway.herder.passwords import password_keys
from sluiceway.provider.dag_bundle.dag_keys import dag_of
from sluiceway.provider.progress.connector_progress import ConnectorProgress, OffsetsSnapshot
from sluiceway.provider.progress.probe_request import ProbeRequest, probe_requests
from sluiceway.provider.ui import moves, views
from sluiceway.provider.ui.dag_facts import DagFacts, DagReader, drift
from sluiceway.provider.ui.flow import Member, graph
from sluiceway.provider.ui.sampler import Sampler
from sluiceway.rest.client import RestError
from sluiceway.storage.interfaces import ConfigBackingStore
from sluiceway.storage.model import ConnectorEntry

_DEAD_LETTERS = 10
_COMMIT_SLACK = 15.0  # seconds by which an offset commit of a sink may be late
_WAIT_SECONDS = 0.2  # a measurement of many connectors takes longer, and the list is requested again after it
_NOT_MEASURED = ConnectorProgress()


class Probe(Protocol):
    """Reads offsets from Kafka (``sluiceway.provider.progress.probe.KafkaProbe``)."""

    def snapshot(self, requests: list[ProbeRequest]) -> OffsetsSnapshot: ...


class Airflow(Protocol):
    """The part of Airflow's database that the page shows (``AirflowDatabase``)."""

    def dags(self, dag_ids: Collection[str]) -> Mapping[str, DagFacts]: ...

    def given_config(self, dag_id: str, task_id: str) -> Mapping[str, Any] | None: ...


class Dashboard:
    """Serves the page's data, one instance for each API server process. Thread-safe.

    Every method raises ConnectError if Kafka does not answer.
    """

    def __init__(self, worker: WorkerConfig, herder: Herder, config: ConfigBackingStore, probe: Probe, airflow: Airflow) -> None:
        self._worker = worker
        self._herder = herder
        self._airflow = airflow
        self._dags = DagReader(airflow.dags)
        self._described = PerConnector(_describe)
        other = str(worker.values[MIGRATE_WITH] or "").strip()
        self._other = moves.OtherCluster(other) if other else None
        spread = worker.number("offset.flush.interval.ms") / 1000 + _COMMIT_SLACK
        self.sampler = Sampler(lambda: probe_requests(config.snapshot(), worker, herder.topics), probe.snapshot, spread=spread)

    def start(self) -> None:
        """Start measuring progress."""
        self.sampler.start()

    def stop(self) -> None:
        """Stop measuring progress."""
        self.sampler.stop()

    def configs(self) -> dict[str, Mapping[str, str]]:
        """Return the configs of all connectors by name, sorted."""
        return self._herder.overview().configs()

    def overview(self, names: Iterable[str], editable: Collection[str], dag: str | None = None) -> dict[str, Any]:
        """Return the list of connectors. Waits for Kafka at most 0.2 seconds, and then returns the latest known progress.

        Args:
            names: the connectors that the user may see.
            editable: those that the user may change.
            dag: the id of a DAG, to return only the connectors that it runs.
        """
        latest, now = self.sampler.latest(_WAIT_SECONDS), time.time()
        parts, dags = self._parts(self._herder.overview(), names, dag)
        rows = [
            {
                **views.row(part, latest.connectors.get(name, _NOT_MEASURED), latest.rates.get(name), may_edit=name in editable),
                **views.scheduled(part, dags.get(part["dag"]), now),
            }
            for name, part in parts.items()
        ]
        other = None if self._other is None else self._other.address
        return {"now": now, "measured": latest.at, "problem": latest.problem, "other_cluster": other, "connectors": rows}

    def flow(self, names: Iterable[str], dag: str | None = None) -> dict[str, Any]:
        """Return the graph of connectors and topics. Arguments and waiting are as those of ``overview``."""
        latest, now, overview = self.sampler.latest(_WAIT_SECONDS), time.time(), self._herder.overview()
        parts, dags = self._parts(overview, names, dag)
        configs, rates = overview.configs(), self.sampler.topic_rates(parts)
        members = [
            Member(
                name,
                configs[name],
                self._herder.topics(name),
                latest.connectors.get(name, _NOT_MEASURED),
                latest.rates.get(name),
                rates.get(name, {}),
            )
            for name in parts
        ]
        nodes = [{**views.node(part), **views.scheduled(part, dags.get(part["dag"]), now)} for part in parts.values()]
        return {"problem": latest.problem, "connectors": nodes, **graph(members)}

    def moves(self, names: Iterable[str], all_there: bool) -> dict[str, Any]:
        """Return connectors on this cluster and on the other one. Waits for that one up to 5 seconds; a problem is in the result.

        Args:
            names: the connectors here that the user may see.
            all_there: whether the user may also see those that exist only there.

        Raises NotFoundError if the worker file names no other cluster.
        """
        if self._other is None:
            raise NotFoundError(f"The worker file names no other cluster. Set {MIGRATE_WITH} to the URL of its REST API.")
        overview, latest = self._herder.overview(), self.sampler.latest(_WAIT_SECONDS)
        parts, _ = self._parts(overview, names, None)
        problem, there = latest.problem, {}
        try:
            there = self._other.statuses()
        except RestError as error:
            problem = str(error)
        here = {name: moves.side_here(overview.status(name)) for name in parts}
        unseen = there.keys() - overview.configs().keys() if all_there else ()
        rows = [
            moves.row(
                name,
                parts.get(name),
                here.get(name),
                moves.side_there(there[name]) if name in there else None,
                latest.connectors.get(name, _NOT_MEASURED).lag,
            )
            for name in sorted({*parts, *unseen})
        ]
        return {"cluster": self._other.address, "problem": problem, "connectors": rows}

    def history(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the last hour of connectors, by name."""
        now = time.time()
        return {name: views.history(self.sampler.series(name), now) for name in names}

    def connector(self, name: str, editable: bool) -> dict[str, Any]:
        """Return the details of one connector; raises NotFoundError."""
        latest = self.sampler.latest()
        overview = self._herder.overview()
        entry = overview.entry(name, f"Connector {name} not found")
        progress = latest.connectors.get(name, _NOT_MEASURED)
        status = overview.status(name) if editable else discreet_status(overview.status(name))
        passwords = password_keys(entry.config or {})
        detail = views.details(entry, status, progress, self._herder.topics(name), passwords)
        part, now = _describe(overview, name), time.time()
        dag, task = part["dag"], part["config_task"]
        given = self._airflow.given_config(dag, task) if dag is not None and task is not None else None
        return {
            **views.row(part, progress, latest.rates.get(name), may_edit=editable),
            **views.scheduled(part, self._dags.facts([dag]).get(dag) if dag is not None else None, now),
            **detail,
            "drift": views.shown_drift(drift(given, entry.config or {}), passwords),
            **views.history(self.sampler.series(name), now),
            "problem": latest.problem,
        }

    def dead_letters(self, name: str, editable: bool) -> dict[str, Any]:
        """Return the newest DLQ records of a connector, read from Kafka by this call; raises NotFoundError.

        ``editable``: the user may change the connector, and so see the messages of errors.
        """
        from sluiceway.kafka.dead_letter_topic import DeadLetterTopic

        topic = self._herder.info(name).config.get(DLQ_TOPIC, "").strip()
        if not topic:
            return views.dead_letters(None, None, ())
        try:
            queue = DeadLetterTopic(self._worker, topic, name)
        except NotFoundError:  # the first DLQ record creates the topic
            return views.dead_letters(topic, 0, ())
        return views.dead_letters(topic, queue.count(), queue.newest(_DEAD_LETTERS), may_edit=editable)

    def _parts(
        self, overview: Overview, names: Iterable[str], dag: str | None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, DagFacts]]:
        """Return the described connectors, with ``dag`` only those that it runs, and the facts of their DAGs."""
        described = self._described.values(overview, names)
        parts = {name: part for name, part in described.items() if dag is None or part["dag"] == dag}
        return parts, self._dags.facts({part["dag"] for part in parts.values() if part["dag"] is not None})


def _describe(overview: Overview, name: str) -> dict[str, Any]:
    entry = overview.entry(name, f"Connector {name} not found")
    return views.described(entry, overview.status(name), _dag(entry))


def _dag(entry: ConnectorEntry) -> str | None:
    try:
        return dag_of(entry.name, entry.config or {})
    except ConfigError:  # the name is too long for a DAG id
        return None
