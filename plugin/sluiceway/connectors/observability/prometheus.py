"""PrometheusSourceConnector and its task: produce a record for each series of each scrape."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, SourceConnector, SourceRecord, SourceTask
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.observability import prometheus_config as keys
from sluiceway.connectors.observability.exposition import Exposition
from sluiceway.connectors.observability.prometheus_config import PrometheusOptions, prometheus_options
from sluiceway.connectors.observability.records import METRIC_SCHEMA, Point, Series, metric_struct, stale_struct
from sluiceway.connectors.observability.scraper import Event, Gone, Scrape, Scraper, slot
from sluiceway.connectors.observability.targets import Target, merged
from sluiceway.data import STRING_SCHEMA, Struct
from sluiceway.errors import ConfigError, ConnectError, DataError

log = logging.getLogger(__name__)

SCRAPED_AT = "timestamp"

_ENOUGH_RECORDS = 10_000
_WAIT_SECONDS = 1.0
_MOST_LASTS = 10_000


class TargetState:
    """Turns the scrapes of one target into records, and marks what is missing: series that ended, and gaps."""

    def __init__(self, target: Target, options: PrometheusOptions, last: int | None) -> None:
        self._target = target
        self._options = options
        self.last = last
        """When the last scrape began whose records are complete, in milliseconds; None if there was none."""
        self._gap: int | None = None
        self._live: Mapping[str, Series] = {}
        self._error: str | None = None
        self._exposition = Exposition(
            lambda exposed: merged(exposed, target.labels, honor=options.honor_labels),
            options.keeps,
            with_help=options.with_help,
            with_times=options.honor_timestamps,
        )
        self._up, self._duration, self._samples = (
            Series.of(name, "gauge", target.labels) for name in ("up", "scrape_duration_seconds", "scrape_samples_scraped")
        )

    @property
    def error(self) -> str | None:
        """Why the last scrape failed; None if it did not."""
        return self._error

    def scraped(self, scrape: Scrape) -> list[SourceRecord]:
        """Return the records of a scrape."""
        at = scrape.at
        missed = self._missed_since(at)
        if missed is not None:
            self._gap = self._gap or missed
        points, error = self._points(scrape)
        self._note(error)
        values = [(point.series.key, metric_struct(point, at, self._gap)) for point in points]
        if error is None:
            self._gap = None
        ended = self._ended({} if error is not None else self._exposition.series, at)
        own = (self._up, float(error is None)), (self._duration, scrape.duration), (self._samples, float(self._count(error)))
        about = [(series.key, metric_struct(Point(series, value), at, missed)) for series, value in own]
        return self._records(values + ended + about, at)

    def gone(self, at: int) -> list[SourceRecord]:
        """Return the staleness markers of all series of a target that is scraped no more."""
        if self.last is None:
            return []  # it was never scraped
        at = max(at, self.last)
        own = [(each.key, stale_struct(each, at)) for each in (self._up, self._duration, self._samples)]
        return self._records(self._ended({}, at) + own, at)

    def _points(self, scrape: Scrape) -> tuple[list[Point], str | None]:
        if scrape.error is not None:
            return [], scrape.error
        try:
            points = self._exposition.points(scrape.body.decode(), openmetrics=scrape.openmetrics)
        except (DataError, UnicodeDecodeError) as error:
            return [], str(error)
        return points, None

    def _count(self, error: str | None) -> int:
        return 0 if error is not None else self._exposition.samples

    def _missed_since(self, at: int) -> int | None:
        """Return when the last scrape began if scrapes are missing since, None if none is."""
        if self.last is None:
            return None
        interval = self._options.interval
        phase = self._target.phase(interval)
        return self.last if slot(at, interval, phase) - slot(self.last, interval, phase) > 1 else None

    def _ended(self, live: Mapping[str, Series], at: int) -> list[tuple[str, Struct]]:
        """Return the staleness markers of the series that are live no more."""
        if live is self._live:
            return []
        ended = [(key, stale_struct(series, at)) for key, series in self._live.items() if key not in live]
        self._live = live
        return ended

    def _records(self, values: Sequence[tuple[str, Struct]], at: int) -> list[SourceRecord]:
        """Return records of which only the last has the scrape's offset, so that a part of a scrape is no position."""
        topic, target, last = self._options.topic, self._target, self.last
        partition = target.partition
        of, offset = (None, None) if last is None else (partition, {SCRAPED_AT: last})
        schema, key_schema = METRIC_SCHEMA, STRING_SCHEMA
        records = [
            SourceRecord(of, offset, topic, value, schema, key, key_schema, timestamp=value.values_[_TIMESTAMP])
            for key, value in values
        ]
        records[-1].source_partition, records[-1].source_offset = partition, {SCRAPED_AT: at}
        self.last = at
        return records

    def _note(self, error: str | None) -> None:
        if error != self._error:
            if error is None:
                log.info("%s can be scraped again", self._target.url)
            else:
                log.warning("%s cannot be scraped: %s. up is 0 until it can.", self._target.url, error)
            self._error = error


_TIMESTAMP = next(field.index for field in METRIC_SCHEMA.fields if field.name == "timestamp")


class PrometheusSourceTask(SourceTask):
    """Scrapes its share of the targets. The source offset ``{"timestamp": n}`` of a target is when its last scrape began."""

    _scraper: Scraper | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = prometheus_options(config)
        self._events: deque[Event] = deque()
        self._states: dict[str, TargetState] = {}
        self._lasts: dict[str, int] = {}
        self._reason: str | None = None
        self._counts = {"scrapes": 0, "scrapes-failed": 0, "samples-scraped": 0}
        self._scraper = Scraper(self._options, self._deliver)
        self._scraper.start()

    def _deliver(self, event: Event) -> None:
        self._events.append(event)
        self.context.wake()

    def poll(self) -> Sequence[SourceRecord] | None:
        scraper = self._started()
        if not self._events:
            self.context.wait(_WAIT_SECONDS)
        records: list[SourceRecord] = []
        for event in self._next_events():
            state = self._state_of(event.target)
            if isinstance(event, Gone):
                records += state.gone(event.at)
                self._forget(event.target.url)
                continue
            found = state.scraped(event)
            scraper.done(event.target)
            records += found
            self._counts["scrapes"] += 1
            self._counts["scrapes-failed"] += state.error is not None
            self._counts["samples-scraped"] += len(found)
            if len(records) >= _ENOUGH_RECORDS:
                break
        self._show_waiting(scraper)
        if scraper.failure is not None:
            raise ConnectError(f"The scraping has ended: {scraper.failure!r}") from scraper.failure
        return records or None

    def _next_events(self) -> Iterator[Event]:
        while self._events:
            yield self._events.popleft()

    def _state_of(self, target: Target) -> TargetState:
        state = self._states.get(target.url)
        if state is None:
            state = self._states[target.url] = TargetState(target, self._options, self._stored(target))
        return state

    def _forget(self, url: str) -> None:
        """Forget a target but for its last scrape, whose offset need not be stored yet when the target comes back."""
        last = self._states.pop(url).last
        if len(self._lasts) >= _MOST_LASTS:
            self._lasts.clear()
        if last is not None:
            self._lasts[url] = last

    def _stored(self, target: Target) -> int | None:
        last = self._lasts.pop(target.url, None)
        if last is not None:
            return last
        offset = self.context.offset_storage_reader.offset(target.partition)
        if offset is None:
            return None
        check_offset(offset)
        return int(offset[SCRAPED_AT])

    def _show_waiting(self, scraper: Scraper) -> None:
        """Show in the status if targets cannot be found, or if none can be scraped."""
        reason = scraper.problem
        if reason is None and self._states and all(state.error is not None for state in self._states.values()):
            url, state = next(iter(self._states.items()))
            reason = f"No target can be scraped. {url}: {state.error}"
        if reason != self._reason:
            self.context.waiting(reason, 0.0 if reason is None else self._options.interval / 1000)
            self._reason = reason

    def _started(self) -> Scraper:
        if self._scraper is None:
            raise ConnectError("The task has not been started. Call start() first.")
        return self._scraper

    def metrics(self) -> Mapping[str, float]:
        """Return the numbers of targets, of those that are down, of scrapes, and of those that were left out."""
        scraper = self._scraper
        if scraper is None:
            return {}
        down = sum(state.error is not None for state in list(self._states.values()))
        return {"targets": scraper.targets, "targets-down": down, "scrapes-skipped": scraper.skipped, **self._counts}

    def stop(self) -> None:
        if self._scraper is not None:
            self._scraper.stop()


class PrometheusSourceConnector(SourceConnector):
    """Scrapes targets that expose metrics as Prometheus does, in its text format or OpenMetrics: a record for each series of each
    scrape. Targets come from the config, files, or a URL. Series that end and scrapes that are missing are marked.
    """

    task_class = PrometheusSourceTask
    interval_by_timestamp = False  # a scrape has what is there now

    @classmethod
    def config_def(cls) -> ConfigDef:
        return keys.PROMETHEUS

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        definition = cls.config_def()
        found = definition.validate(config)
        if any(found[key.name].errors for key in definition):
            return found
        values = {key.name: found[key.name].value for key in definition}
        for name, message in keys.prometheus_conflicts(values, config).items():
            found[name].errors.append(str(ConfigError(name, None, message)))
        return found

    def start(self, config: Mapping[str, str]) -> None:
        prometheus_options(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return one config for each task. Each finds all targets and takes its share, so that new ones restart no task."""
        fewest = max_tasks
        options = prometheus_options(self._config)
        if not (options.files or options.sd_url):
            fewest = min(max_tasks, len(set(options.targets)))
        return [{**self._config, keys.TASK_INDEX: str(index), keys.TASK_COUNT: str(fewest)} for index in range(fewest)]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        # A scrape cannot be read again: one that was not committed is a marked gap.
        return ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        for partition, offset in offsets:
            if offset is None:
                continue
            if "target" not in partition:
                raise ConnectError("A partition must have the key 'target', the URL of a target.")
            check_offset(offset)
        return True


def check_offset(offset: Offset) -> None:
    """Raise ConnectError unless an offset is a time."""
    at = offset.get(SCRAPED_AT)
    if type(at) is not int or at < 0:
        raise ConnectError(
            f"The offset {dict(offset)} must have the key '{SCRAPED_AT}': when the last scrape began, in milliseconds since 1970."
        )
