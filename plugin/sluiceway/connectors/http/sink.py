"""HttpSinkConnector and its task: send records to a server, in order, and again until it has answered for them."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from sluiceway.api import DONE, BatchSinkTask, Outcome, SinkConnector, SinkRecord, WriteResult
from sluiceway.config.definition import ConfigDef, ConfigValue
from sluiceway.connectors.checked_connector import CheckedConnector
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.http.client import Answer, HttpClient
from sluiceway.connectors.http.connection import shown_url
from sluiceway.connectors.http.requests import Item, Requests
from sluiceway.connectors.http.retries import RETRIES
from sluiceway.connectors.http.sink_config import CONFIG, METHOD, URL, sink_conflicts, sink_options
from sluiceway.connectors.repeats import repeats
from sluiceway.errors import ConnectError

_NOT_FOUND, _METHOD, _GONE = 404, 405, 410

_Results = dict[Item, WriteResult]


class HttpSinkTask(BatchSinkTask[Item]):
    """Sends records in lanes: the requests of a lane one after the other, and several lanes at the same time.

    A lane ends with the first request that must be repeated, so that no later record of it overtakes.
    """

    _client: HttpClient | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """Prepare the connections. Raises ConfigError."""
        self._options = options = sink_options(config)
        self.limits = options.limits
        self._requests = Requests(options)
        self._client = HttpClient(options.server)
        self._pool = ThreadPoolExecutor(options.in_flight, "http-sink")
        self._repeats: dict[int, int] = {}
        self._pause = 0.0
        self._fruitless = 0
        self._sent = itertools.count()
        self._sent_before = 0

    def stop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
            self._pool.shutdown(wait=False, cancel_futures=True)

    def put(self, records: Sequence[SinkRecord]) -> None:
        self._repeats = repeats(records)
        super().put(records)

    def prepare(self, record: SinkRecord) -> Item | None:
        return self._requests.item(record, self._repeats.get(id(record), 0))

    def order_key(self, item: Item) -> Hashable:
        return item.lane

    def least_pause(self) -> float:
        return self._pause

    def write(self, items: Sequence[Item]) -> Sequence[WriteResult]:
        self._pause = 0.0
        found: _Results = {}
        failures: list[UnreachableError] = []
        lanes = list(self._lanes(items))
        running = [self._pool.submit(self._run, lane) for lane in lanes]
        lasting: Exception | None = None
        for lane in running:
            try:
                results, failure = lane.result()
            except Exception as error:  # noqa: BLE001 (the other lanes are waited for, because what they send counts)
                lasting = lasting or error
                continue
            found |= results
            if failure is not None:
                failures.append(failure)
        if lasting is not None:
            raise lasting
        return self._judged(items, found, failures)

    def metrics(self) -> Mapping[str, float]:
        """Return also the number of requests that were sent."""
        return {**super().metrics(), "requests-sent": self._sent_before}

    def _judged(self, items: Sequence[Item], found: _Results, failures: Sequence[UnreachableError]) -> list[WriteResult]:
        """Return the result of each item. Raises the failure if none has one, and ConnectError after too many in a row."""
        if not failures:
            self._fruitless = 0
            return [found[each] for each in items]
        self._pause = max(each.pause for each in failures)
        self._fruitless = 0 if found else self._fruitless + 1
        retries = self._options.retries.most
        if retries is not None and self._fruitless > retries:
            raise ConnectError(f"{failures[0]} (after {self._fruitless} attempts, more than {RETRIES} allows)")
        if not found:
            raise failures[0]
        later = WriteResult(Outcome.RETRY, str(failures[0]))
        return [found.get(each, later) for each in items]

    def _lanes(self, items: Sequence[Item]) -> Iterator[list[list[Item]]]:
        """Yield the requests of each lane. Without an order, each request is a lane."""
        lanes: dict[Hashable, list[Item]] = {}
        for each in items:
            lanes.setdefault(each.lane, []).append(each)
        for lane in lanes.values():
            requests = [
                list(group[start : start + self._size(group[0])])
                for _target, found in itertools.groupby(lane, lambda each: (each.method, each.url))
                for group in [list(found)]
                for start in range(0, len(group), self._size(group[0]))
            ]
            if lane[0].lane is None:
                yield from ([each] for each in requests)
            else:
                yield requests

    def _size(self, item: Item) -> int:
        return 1 if item.method == "DELETE" else self._options.batch

    def _run(self, requests: Sequence[Sequence[Item]]) -> tuple[_Results, UnreachableError | None]:
        """Send the requests of a lane. Return the results, and what has ended it early."""
        found: _Results = {}
        for items in requests:
            try:
                self._send(items, found)
            except UnreachableError as error:
                return found, error
        return found, None

    def _send(self, items: Sequence[Item], found: _Results) -> None:
        """Send a request, and its halves if it is refused. Raises UnreachableError, and ConnectError."""
        if self._client is None:
            raise ConnectError("The task has been stopped.")
        headers, body = self._requests.content(items)
        self._sent_before = next(self._sent) + 1
        answer = self._client.send(items[0].method, items[0].url, headers, body)
        reason = self._refusal(items[0], answer)
        if reason is None:
            found |= dict.fromkeys(items, DONE)
        elif len(items) == 1 or not self._options.splits:
            found |= dict.fromkeys(items, WriteResult(Outcome.REFUSED, reason))
        else:
            half = len(items) // 2
            self._send(items[:half], found)
            self._send(items[half:], found)

    def _refusal(self, item: Item, answer: Answer) -> str | None:
        """Return why a request was refused; None if it was done. Raises ConnectError if that is not because of a record."""
        if answer.is_success or (item.method == "DELETE" and answer.status in (_NOT_FOUND, _GONE)):
            return None
        told = f"{shown_url(answer.url)} answered with HTTP {answer.status}: {answer.text}"
        if answer.status == _METHOD:
            raise ConnectError(f"{told} Check {METHOD} and {URL}.")
        if answer.status == _NOT_FOUND and "${" not in self._options.url:
            raise ConnectError(f"{told} Check {URL}.")
        return told


class HttpSinkConnector(CheckedConnector, SinkConnector):
    """Sends records to an HTTP server, one or several in a request: at least once, and once if it heeds idempotency keys.

    The options are those of Aiven's connector, and some more.
    """

    task_class = HttpSinkTask
    java_class = "io.aiven.kafka.connect.http.HttpSinkConnector"
    java_task_class = "io.aiven.kafka.connect.http.HttpSinkTask"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return sink_conflicts(values, config)

    @classmethod
    def preview(cls, config: Mapping[str, str], records: Sequence[SinkRecord]) -> Sequence[str]:
        """Return the requests that tasks would send for single records, without their credentials."""
        requests = Requests(sink_options(config))
        made = [requests.item(record, 0) for record in records]
        return [
            f"{each.method} {shown_url(each.url)} {(requests.content([each])[1] or b'').decode('utf-8', 'replace')}".strip()
            for each in made
            if each is not None
        ]

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks
