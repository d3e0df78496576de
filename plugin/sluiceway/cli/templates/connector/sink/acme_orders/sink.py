"""The sink: writes records to a collection of the service."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from sluiceway.api import DONE, BatchLimits, BatchSinkTask, Outcome, SinkConnector, SinkRecord, WriteResult
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type, ValidatedValue
from sluiceway.config.validators import NonEmptyString, Range
from sluiceway.errors import ConnectError, DataError

from acme_orders.client import Client, RefusedError, try_connection
from acme_orders.config import CONNECTION, Connection

COLLECTION = "collection"
BATCH_SIZE = "batch.size"
UNREACHABLE = "sluiceway.unreachable.timeout.ms"

_OK, _TOO_MANY = 200, 429
_RETRIES = 10
_MOST_BYTES = 1024 * 1024

DEFINITION = CONNECTION.define(
    ConfigKey(
        name=COLLECTION,
        type=Type.STRING,
        importance=Importance.HIGH,
        group="Writing",
        validator=NonEmptyString(),
        doc="The collection to write to. The service creates it.",
    ),
    ConfigKey(
        name=BATCH_SIZE,
        type=Type.INT,
        default=500,
        importance=Importance.LOW,
        group="Writing",
        validator=Range(1),
        doc="The most records of a request.",
    ),
    ConfigKey(
        name=UNREACHABLE,
        type=Type.LONG,
        default=3_600_000,
        importance=Importance.LOW,
        group="Writing",
        validator=Range(0),
        doc="Milliseconds to wait for a service that does not answer before the task fails.",
    ),
)


class Write(NamedTuple):
    """A part of a request: the id of a document, and what the service does with it, as JSON."""

    id: str
    body: str


class AcmeOrdersSinkTask(BatchSinkTask[Write]):
    """Writes each record as the document with its key. A record that is written again changes nothing."""

    _client: Client | None = None

    def start(self, config: Mapping[str, str]) -> None:
        values: Mapping[str, Any] = DEFINITION.parse(config)
        self.limits = BatchLimits(
            records=values[BATCH_SIZE], size=_MOST_BYTES, retries=_RETRIES, unreachable=values[UNREACHABLE] / 1000
        )
        self._path = f"/{quote(values[COLLECTION], safe='')}"
        self._client = Client(Connection.of(values))

    def prepare(self, record: SinkRecord) -> Write:
        return prepared(record)

    def size_of(self, item: Write) -> int:
        return len(item.body)

    def order_key(self, item: Write) -> str:
        return item.id

    def write(self, items: Sequence[Write]) -> Sequence[WriteResult]:
        answers = self._send(f"[{','.join(item.body for item in items)}]")
        try:
            return [_result(answer) for answer in answers]
        except (AttributeError, TypeError) as error:
            raise RefusedError("The service did not answer with an outcome for each record.") from error

    def _send(self, content: str, path: str = "") -> Any:
        """Send a request to the collection, or to a path below it; return the answer."""
        if self._client is None:
            raise ConnectError("The sink task has not been started. Call start() first.")
        return self._client.call("POST", self._path + path, content=content)

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()


class AcmeOrdersSinkConnector(SinkConnector):
    """Writes records to a collection: each replaces the document with its key, and a tombstone deletes it."""

    task_class = AcmeOrdersSinkTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return DEFINITION

    @classmethod
    def try_config(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        """Try the connection."""
        try_connection(found, Connection.of(DEFINITION.parse(config)))

    @classmethod
    def preview(cls, config: Mapping[str, str], records: Sequence[SinkRecord]) -> Sequence[str]:
        return [_shown(record) for record in records]

    def start(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks


def prepared(record: SinkRecord) -> Write:
    """Return what to write for a record. Its id is the key, or else the record's position. Raises DataError."""
    if record.key is None and record.value is None:
        raise DataError("A record without a key and a value names no document.")
    if record.key is None:
        name = f"{record.topic}-{record.kafka_partition}-{record.kafka_offset}"
    elif isinstance(record.key, (str, int)):
        name = str(record.key)
    else:
        raise DataError(f"The key must be a string or a whole number, not a {type(record.key).__name__}.")
    if record.value is not None and not isinstance(record.value, Mapping):
        raise DataError(f"The value must be a struct or a map, not a {type(record.value).__name__}.")
    try:
        body = json.dumps({"id": name, "document": record.value}, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"The value cannot be written as JSON: {error}") from error
    return Write(name, body)


def _plain(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):  # a Struct
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _result(answer: Mapping[str, Any]) -> WriteResult:
    status, reason = answer.get("status"), str(answer.get("error", ""))
    if status == _OK:
        return DONE
    return WriteResult(Outcome.RETRY if status == _TOO_MANY else Outcome.REFUSED, reason)


def _shown(record: SinkRecord) -> str:
    try:
        return prepared(record).body
    except DataError as error:
        return f"Refused: {error}"
