"""OtlpSinkConnector and its task: send records of metrics to receivers of OTLP over HTTP."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from sluiceway.api import DONE, BatchSinkTask, Outcome, SinkConnector, SinkRecord, WriteResult
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.config.password import revealed
from sluiceway.connectors.errors import LoginError
from sluiceway.connectors.observability.otlp_client import BusyError, OtlpClient, RefusedError, Taken
from sluiceway.connectors.observability.otlp_sink_config import BATCH, ENDPOINTS, HEADERS, OTLP_SINK, headers_of, sink_options
from sluiceway.connectors.observability.otlp_write import Item, OtlpWriter
from sluiceway.connectors.simple_values import record_name
from sluiceway.errors import ConfigError, ConnectError, DataError, MissingToolError

log = logging.getLogger(__name__)


class OtlpSinkTask(BatchSinkTask[Item]):
    """Sends the points of records in requests. A request that is refused is halved until the point that is refused is known."""

    _client: OtlpClient | None = None

    def start(self, config: Mapping[str, str]) -> None:
        options = sink_options(config)
        self.limits = options.limits
        self._rejected = 0
        self._warning = ""
        self._writer = OtlpWriter(options.resource_labels)
        self._client = OtlpClient(options)

    def stop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def prepare(self, record: SinkRecord) -> Item | None:
        if record.value is None:  # a tombstone says nothing about a point that was sent
            return None
        name = record_name(record)
        if not isinstance(record.value, Mapping):
            raise DataError(f"{name} is no metric: its value is {type(record.value).__name__}, not a struct or a map.")
        try:
            return self._writer.item(record.value)
        except DataError as error:
            raise DataError(f"{name} cannot be sent: {error}.") from error

    def size_of(self, item: Item) -> int:
        return item.size

    def order_key(self, item: Item) -> Hashable:
        return item.metric.name, item.resource, item.scope, item.attributes

    def least_pause(self) -> float:
        return self._started().retry_after

    def write(self, items: Sequence[Item]) -> Sequence[WriteResult]:
        try:
            taken = self._started().send(self._writer.request(items).SerializeToString())
        except BusyError as error:
            return [WriteResult(Outcome.RETRY, str(error))] * len(items)
        except RefusedError as error:
            if len(items) == 1:
                return [WriteResult(Outcome.REFUSED, str(error))]
            return self._halves(items, too_large=error.too_large)
        return self._results(len(items), taken)

    def metrics(self) -> Mapping[str, float]:
        """Return how many points receivers rejected in requests of which they took others."""
        return {**super().metrics(), "points-rejected": self._rejected}

    def _halves(self, items: Sequence[Item], *, too_large: bool) -> list[WriteResult]:
        half = len(items) // 2
        first, second = items[:half], items[half:]
        if too_large:  # the next requests are smaller from the start
            most = max(sum(map(self.size_of, each)) for each in (first, second))
            self.limits = replace(self.limits, size=min(most, self.limits.size or most))
        results = list(self.write(first))
        try:
            return [*results, *self.write(second)]
        except OSError as error:  # what the first half has sent must not be sent again
            return [*results, *([WriteResult(Outcome.RETRY, str(error))] * len(second))]

    def _results(self, sent: int, taken: Taken) -> list[WriteResult]:
        """Return the outcomes of a success. OTLP does not tell which points were rejected, and forbids to send them again."""
        if taken.rejected >= sent:
            return [WriteResult(Outcome.REFUSED, taken.reason or "the receiver rejected it")] * sent
        if taken.rejected > 0:
            self._rejected += taken.rejected
            told = f"The receiver has rejected {taken.rejected} of {sent} points, and does not tell which: {taken.reason}"
            if self.context.configs.get("errors.tolerance") != "all":
                raise ConnectError(
                    f"{told}. Set errors.tolerance=all to go on without them, with {BATCH}=1 if each must be reported by itself."
                )
            log.warning("%s", told)
        elif taken.reason != self._warning:
            self._warning = taken.reason
            log.warning("The receiver has taken the points, and says: %s", taken.reason)
        return [DONE] * sent

    def _started(self) -> OtlpClient:
        if self._client is None:
            raise ConnectError("The task has not been started. Call start() first.")
        return self._client


class OtlpSinkConnector(SinkConnector):
    """Sends records of metrics by OTLP over HTTP: to OpenTelemetry Collectors, Prometheus, and others that receive it."""

    task_class = OtlpSinkTask
    _config: dict[str, str]

    @classmethod
    def config_def(cls) -> ConfigDef:
        return OTLP_SINK

    def start(self, config: Mapping[str, str]) -> None:
        sink_options(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        found = OTLP_SINK.validate(config)
        headers = revealed(found[HEADERS].value) or ""
        if not found[HEADERS].errors and "${" not in headers:  # a reference may be to all of the headers
            try:
                headers_of(headers)
            except ConfigError as error:
                found[HEADERS].errors.append(str(error))
        return found

    @classmethod
    def try_config(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        """Send a request without points."""
        try:
            options = sink_options(config)
            OtlpWriter(options.resource_labels)
            with closing(OtlpClient(options)) as client:
                client.send(b"")
        except (OSError, MissingToolError, BusyError, RefusedError) as error:  # tasks need the package, and may be elsewhere
            log.warning("%s", error)
        except ConnectError as error:
            found[error.key if isinstance(error, LoginError) else ENDPOINTS].errors.append(str(error))
