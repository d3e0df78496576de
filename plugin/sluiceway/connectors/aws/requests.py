"""The base of sinks whose service takes requests of limited size: several of them at once, in the order of each key."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from sluiceway.api import BatchLimits, BatchSinkTask, Outcome, WriteResult
from sluiceway.connectors.aws.client import opened
from sluiceway.connectors.aws.connection import Account
from sluiceway.connectors.errors import RefusedError, UnreachableError

Item = TypeVar("Item")

_MOST_BYTES = 32 * 1024 * 1024
_BEHIND = WriteResult(Outcome.RETRY, "an earlier record of the same key is written first")


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The most records and bytes of a request, and the most requests at once."""

    records: int
    size: int
    at_once: int


class RequestSinkTask(BatchSinkTask[Item]):
    """Writes records with several requests at once.

    A request has at most one record of an ``order_key``, and the next one of that key is sent when this one is done: a service
    that takes some records of a request and refuses others would else put them in another order.
    """

    requests: RequestLimits
    account: Account

    _client: Any = None
    _pool: ThreadPoolExecutor | None = None

    def open_requests(self, account: Account, requests: RequestLimits, unreachable: float | None) -> None:
        """Set the limits. Called by ``start``."""
        self.account, self.requests = account, requests
        self.limits = BatchLimits(records=2**31, size=_MOST_BYTES, longest_backoff=account.longest_pause, unreachable=unreachable)

    def stop(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False)
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def connect(self, client: Any) -> None:
        """Ask for what the task must know of the queue or stream. Called with a new client; not in ``put`` again."""

    def send(self, client: Any, items: Sequence[Item]) -> Sequence[WriteResult]:
        """Write the items of one request. Called by several threads.

        Raises UnreachableError if none of them is written, and RefusedError if the service refuses the request as a whole.
        """
        raise NotImplementedError

    def write(self, items: Sequence[Item]) -> Sequence[WriteResult]:
        if self._client is None:
            client = opened(self.account)
            try:
                self.connect(client)
            except BaseException:
                client.close()
                raise
            self._client, self._pool = client, ThreadPoolExecutor(self.requests.at_once, thread_name_prefix="requests")
        results = [_BEHIND] * len(items)
        behind: set[Hashable] = set()
        lost: UnreachableError | None = None
        for wave in self._waves(items):
            numbers = [number for number in wave if self.order_key(items[number]) not in behind]
            lost = self._write_wave(items, numbers, results)
            if lost is not None:
                break
            behind |= {self.order_key(items[number]) for number in numbers if results[number].outcome is Outcome.RETRY} - {None}
        if lost is not None and all(each.outcome is Outcome.RETRY for each in results):
            raise lost
        return results

    def _write_wave(self, items: Sequence[Item], numbers: Sequence[int], results: list[WriteResult]) -> UnreachableError | None:
        """Write items of which none must wait for another, and note their results. Return why AWS was not reached."""
        assert self._pool is not None  # noqa: S101 (opened before)
        requests = list(self._requests(items, numbers))
        answers = list(self._pool.map(lambda request: self._answer([items[number] for number in request]), requests))
        lost: UnreachableError | None = None
        failure: Exception | None = None
        for request, answer in zip(requests, answers, strict=True):
            if isinstance(answer, UnreachableError):
                lost = lost or answer
                answer = [WriteResult(Outcome.RETRY, str(answer))] * len(request)
            elif isinstance(answer, Exception):
                failure = failure or answer
                continue
            for number, result in zip(request, answer, strict=True):
                results[number] = result
        if failure is not None:
            raise failure
        return lost

    def _answer(self, items: Sequence[Item]) -> Sequence[WriteResult] | Exception:
        """Return the results of a request, or the error that it ends with."""
        try:
            return self._sent(items)
        except Exception as error:  # noqa: BLE001 (raised when all requests have ended)
            return error

    def _sent(self, items: Sequence[Item]) -> Sequence[WriteResult]:
        """Send a request, and its items one by one if the service refuses it because of one of them."""
        try:
            return self.send(self._client, items)
        except RefusedError as error:
            if not self.is_of_item(error):
                raise
            if len(items) == 1:
                return [WriteResult(Outcome.REFUSED, str(error))]
        results: list[WriteResult] = []
        for each in items:
            try:
                results += self._sent([each])
            except UnreachableError as error:
                results.append(WriteResult(Outcome.RETRY, str(error)))
        return results

    def is_of_item(self, error: RefusedError) -> bool:
        """Return whether a request may be refused because of one of its items."""
        return False

    def _waves(self, items: Sequence[Item]) -> Iterator[Sequence[int]]:
        """Yield the numbers of items: first those that come first of their keys, then those that come second, and so on."""
        counts: dict[Hashable, int] = {}
        waves: list[list[int]] = []
        for number, item in enumerate(items):
            key = self.order_key(item)
            wave = 0 if key is None else counts.get(key, 0)
            if key is not None:
                counts[key] = wave + 1
            if wave == len(waves):
                waves.append([])
            waves[wave].append(number)
        yield from waves

    def _requests(self, items: Sequence[Item], numbers: Sequence[int]) -> Iterator[list[int]]:
        """Yield the numbers of the items of each request."""
        request: list[int] = []
        size = 0
        for number in numbers:
            more = self.size_of(items[number])
            if request and (len(request) >= self.requests.records or size + more > self.requests.size):
                yield request
                request, size = [], 0
            request.append(number)
            size += more
        if request:
            yield request
