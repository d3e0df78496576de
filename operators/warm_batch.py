"""The part of the connector operators that runs a micro-batch in a shared application, instead of a driver of its own."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from sluiceway import exit_codes
from sluiceway.config.connector import APPLICATION, MICRO_BATCH, MODE
from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.operators.driver_operator import DriverEnd, DriverOperator
from sluiceway.provider.compat import AirflowException, AirflowFailException
from sluiceway.provider.config_provider import refers_to_airflow
from sluiceway.provider.dag_bundle.dag_keys import DagKeys, is_sink_config
from sluiceway.provider.driver.internal_topics import InternalTopics
from sluiceway.provider.driver.warm_batch import RequestedBatch
from sluiceway.provider.lineage.assets import connector_alias, emit, written_uris
from sluiceway.provider.links import publish
from sluiceway.provider.mistakes import mistakes_are_final
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.progress.run_summary import RunSummary
from sluiceway.provider.settings import Settings
from sluiceway.provider.triggers import ConditionTrigger
from sluiceway.provider.triggers.conditions import BatchEndedCondition, Condition
from sluiceway.worker.batch_messages import BatchState

if TYPE_CHECKING:
    from airflow.sdk import Context

# A deferral costs the start of another process, so that a short batch is over before a deferred task would have continued.
_WAIT_IN_SLOT_SECONDS = 5.0
_POLL_SECONDS = 1.0
_PATIENCE_SECONDS = 120.0  # that an application may be without a driver: a busy machine takes a minute to start one


class WarmBatches(DriverOperator):
    """Requests micro-batches from shared applications. A base of the connector operators.

    ``connector`` is the connector's name.
    """

    connector: str
    _moved: RunSummary | None = None
    """The records that the run that has just ended has moved, and its offsets."""

    @mistakes_are_final
    def after_batch(self, context: Context, event: Mapping[str, Any], began: Mapping[str, Any]) -> Any:
        """Continue the task after the wait for a micro-batch. ``event`` as in ``after_wait``, ``began`` a ``RequestedBatch``."""
        settings = self._settings()
        topics = self._internal_topics(self._worker(context, settings))
        batch = RequestedBatch.from_dict(began)
        self.log.info("[%s|worker] %s", batch.connector, event["seen"])
        moved = self._after_batch(context, settings, topics, batch, event["seen"] if event["failed"] else None)
        return self.execute(context) if moved is None else moved

    def _after_batch(
        self, context: Context, settings: Settings, topics: InternalTopics, batch: RequestedBatch, failure: str | None
    ) -> dict[str, Any] | None:
        """Return the task's XCom after the wait for a micro-batch; None to request another. ``failure`` as in ``_batch_end``."""
        raise NotImplementedError

    def _warm_batch(
        self, settings: Settings, name: str, application: str | None, config: Mapping[str, str], mode: str
    ) -> RequestedBatch | None:
        """Return the batch to request from ``application``, which the connector shares; None to start a driver.

        Values from Airflow, such as those of the DAG run, can be given to a driver of the connector's own only.
        """
        if application is None:
            return None
        chosen = DagKeys.parse(config).mode
        if mode != chosen:
            raise AirflowFailException(
                f"Connector {name}: the operator has mode={mode}, but {MODE} in its config is {chosen}, and application "
                f"{application} follows the config. Set {MODE}={mode} in the config, or remove {APPLICATION}."
            )
        if mode != MICRO_BATCH:
            return None
        if refers_to_airflow(read_properties(settings.worker_file(self.worker_properties)), config):
            why = "its config refers to values from Airflow, which application"
            self.log.info("[%s|worker] Starts a driver of its own: %s %s cannot be given", name, why, application)
            return None
        return RequestedBatch(name, application, f"{int(time.time() * 1000):013d}-{uuid.uuid4().hex}")

    def _run_batch(self, context: Context, settings: Settings, topics: InternalTopics, batch: RequestedBatch) -> None:
        """Request a batch, and return if it ends within some seconds; otherwise defer the task until it ends."""
        name = batch.connector
        publish(self, context["ti"])
        with topics.warm_batch(batch) as warm:
            given_up = True
            try:
                warm.request()
                self.log.info("[%s|worker] Requested micro-batch %s from application %s", name, batch.id, batch.application)
                ended = warm.await_end(_WAIT_IN_SLOT_SECONDS, lambda: self._killed)
                given_up = self._killed
            finally:
                if given_up:  # Airflow ends the task, or its execution_timeout is over
                    warm.cancel()
        self._raise_if_killed()
        if not ended:
            since = time.time()
            condition = BatchEndedCondition(name, batch.application, batch.id, since, _PATIENCE_SECONDS, self._deadline(context))
            self._defer(settings, condition, {"began": batch.to_dict()}, "after_batch", _POLL_SECONDS)

    def _deadline(self, context: Context) -> float | None:
        """Return when the execution_timeout is over, in seconds since the epoch: Airflow does not watch it in a deferred task."""
        started = getattr(context["ti"], "start_date", None)
        return started.timestamp() + self.execution_timeout.total_seconds() if started and self.execution_timeout else None

    def _batch_end(self, topics: InternalTopics, batch: RequestedBatch, failure: str | None) -> RunSummary | DriverEnd:
        """Return what an ended batch has moved; a ``DriverEnd`` for one that has not ended, or that another driver has fenced.

        Args:
            topics: the Connect cluster.
            batch: the batch.
            failure: why the wait for its end has failed.

        Raises:
            AirflowException: the batch has failed, or the wait for it.
        """
        seen = topics.batch_seen(batch)
        report = seen.ended
        if report is None:
            topics.cancel_batch(batch)
            if failure is not None:
                raise AirflowException(f"Connector {batch.connector}: {failure}.")
            return DriverEnd(exit_codes.FENCED if seen.superseded else exit_codes.DONE, None, False)
        if report.state is BatchState.FENCED:
            return DriverEnd(exit_codes.FENCED, None, False)
        if report.state is BatchState.FAILED:
            raise AirflowException(
                f"Connector {batch.connector}: its micro-batch in application {batch.application} failed. Airflow retries the "
                f"task.\n{report.trace}"
            )
        before = None if report.before is None else ConnectorProgress(list(report.before))
        moved = RunSummary.between(before, seen.after, report.seconds, report.records)
        self.log.info("[%s|worker] Moved %s", batch.connector, moved)
        return moved

    def _defer(
        self, settings: Settings, condition: Condition, kwargs: dict[str, Any], then: str = "after_wait", interval: float = 0.0
    ) -> NoReturn:
        worker_file = str(settings.worker_file(self.worker_properties))
        trigger = ConditionTrigger.of(condition, worker_file, self.kafka_conn_id, interval or settings.sensor_interval)
        self.defer(trigger=trigger, method_name=then, kwargs=kwargs)

    def _result(
        self,
        context: Context,
        worker: WorkerConfig,
        topics: InternalTopics,
        config: Mapping[str, str],
        moved: RunSummary,
        *,
        bounded: bool,
    ) -> dict[str, Any]:
        """Emit the asset events of a micro-batch that moved records; return the task's XCom."""
        self._moved = moved
        if bounded and moved and (alias := connector_alias(self.connector)) in (self.outlets or ()):
            sink = is_sink_config(config)
            used = [] if sink else topics.topics(self.connector)
            uris = written_uris(self.connector, config, sink=sink, bootstrap_servers=worker.bootstrap_servers, topics=used)
            emit(context["outlet_events"], alias, uris, moved.as_dict())
        return moved.as_dict()
