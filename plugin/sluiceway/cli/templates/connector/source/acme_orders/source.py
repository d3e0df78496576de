"""The source: reads the changes of the service's collections, each into a topic of its own."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, SourceConnector, SourceRecord, SourceTask
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Recommender, Type, ValidatedValue
from sluiceway.config.validators import Range, UniqueList
from sluiceway.data import STRING_SCHEMA
from sluiceway.errors import ConnectError, RetriableError

from acme_orders.client import Client, UnreachableError, try_connection
from acme_orders.config import CONNECTION, Connection

COLLECTIONS = "collections"
TOPIC_PREFIX = "topic.prefix"
BATCH_SIZE = "batch.size"
POLL_INTERVAL = "poll.interval.ms"

_LONGEST_WAIT = 1.0  # seconds: pausing and stopping a task wait for poll

DEFINITION = CONNECTION.define(
    ConfigKey(
        name=COLLECTIONS,
        type=Type.LIST,
        importance=Importance.HIGH,
        group="Reading",
        validator=UniqueList(),
        doc="The collections to read, separated by commas. Tasks share them.",
    ),
    ConfigKey(
        name=TOPIC_PREFIX,
        type=Type.STRING,
        default="",
        group="Reading",
        doc="The start of the topics' names, before the name of the collection.",
    ),
    ConfigKey(
        name=BATCH_SIZE,
        type=Type.INT,
        default=1000,
        importance=Importance.LOW,
        group="Reading",
        validator=Range(1, 10_000),
        recommender=Recommender(values=lambda _name, _parsed: [100, 1000, 10_000]),
        doc="The most changes of a request.",
    ),
    ConfigKey(
        name=POLL_INTERVAL,
        type=Type.INT,
        default=1000,
        importance=Importance.LOW,
        group="Reading",
        validator=Range(1),
        doc="Milliseconds between two requests if there are no new changes.",
    ),
)


class AcmeOrdersSourceTask(SourceTask):
    """Reads the changes of its collections, each in the order of the numbers that the service gives them."""

    _client: Client | None = None

    def start(self, config: Mapping[str, str]) -> None:
        values: Mapping[str, Any] = DEFINITION.parse(config)
        self._prefix: str = values[TOPIC_PREFIX]
        self._batch_size: int = values[BATCH_SIZE]
        self._interval: float = values[POLL_INTERVAL] / 1000
        self._next_read = 0.0
        self._collections: deque[str] = deque(values[COLLECTIONS])
        stored = self.context.offset_storage_reader.offsets([_partition(each) for each in self._collections])
        self._numbers = {
            name: int(offset["number"]) if offset else 0 for name, offset in zip(self._collections, stored, strict=True)
        }
        self._client = Client(Connection.of(values))

    def poll(self) -> Sequence[SourceRecord] | None:
        pause = self._next_read - time.monotonic()
        if pause > 0:
            self.context.wait(min(pause, _LONGEST_WAIT))
            return None
        for _ in range(len(self._collections)):
            collection = self._collections[0]
            self._collections.rotate(-1)  # so that a busy collection does not keep the task from the others
            if records := self._read(collection):
                return records
        self._next_read = time.monotonic() + self._interval
        return None

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()

    def _read(self, collection: str) -> list[SourceRecord]:
        """Return the next records of a collection. An offset is the number of the record's own change."""
        if self._client is None:
            raise ConnectError("The source task has not been started. Call start() first.")
        query = {"after": self._numbers[collection], "limit": self._batch_size}
        try:
            changes = self._client.call("GET", f"/{quote(collection, safe='')}", params=query)
        except UnreachableError as error:  # the runtime polls again, and shows the reason in the status
            raise RetriableError(str(error)) from error
        records = [
            SourceRecord(
                _partition(collection),
                {"number": change["number"]},
                f"{self._prefix}{collection}",
                change["document"],  # None if it was deleted
                key=change["id"],
                key_schema=STRING_SCHEMA,
            )
            for change in changes
        ]
        if changes:
            self._numbers[collection] = changes[-1]["number"]
        return records


class AcmeOrdersSourceConnector(SourceConnector):
    """Reads the changes of collections of acme-orders into topics."""

    task_class = AcmeOrdersSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return DEFINITION

    @classmethod
    def try_config(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        """Try the connection, and recommend the service's collections."""
        values: Mapping[str, Any] = DEFINITION.parse(config)
        known = try_connection(found, Connection.of(values))
        if known is not None:
            found[COLLECTIONS].recommended_values = [*known]
            if missing := sorted(set(values[COLLECTIONS]) - set(known)):
                found[COLLECTIONS].errors.append(
                    f"The service has no collection {', '.join(missing)}. It has: {', '.join(known) or 'none'}."
                )

    def start(self, config: Mapping[str, str]) -> None:
        values: Mapping[str, Any] = DEFINITION.parse(config)
        self._collections: Sequence[str] = values[COLLECTIONS]
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        tasks = min(max_tasks, len(self._collections))
        shares = [self._collections[number::tasks] for number in range(tasks)]
        return [{**self._config, COLLECTIONS: ",".join(share)} for share in shares]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED  # an offset says exactly where to continue

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        for partition, offset in offsets:
            if set(partition) != {"collection"}:
                raise ConnectError(f"{dict(partition)} is no source partition. Use one such as {_partition('orders')}.")
            number = 0 if offset is None else offset.get("number")
            if type(number) is not int or number < 0:
                raise ConnectError(f'{offset} is no source offset. Use one such as {{"number": 42}}.')
        return True


def _partition(collection: str) -> dict[str, str]:
    return {"collection": collection}
