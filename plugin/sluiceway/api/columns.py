"""Batches of records as Arrow arrays. Runs on executors.

Everything that handles records has a row form; some converters, transforms and tasks also have a columnar form, which handles
a whole batch in one call and returns the same data. The row form is the specification: where a columnar form could
differ, it raises ``NotColumnar``, and the batch is handled record by record.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, overload

if TYPE_CHECKING:
    import pyarrow as pa

    from sluiceway.api.records import Offset, Partition, SourceRecord
    from sluiceway.data import Headers, Schema

    AnyArray = pa.Array[Any]


class RowFormReason(enum.Enum):
    """Why a batch is handled record by record. The values are those of the label ``reason`` in metrics."""

    FEW_RECORDS = "few-records"
    """The batch is too small for columns to be faster."""
    HEADERS = "headers"
    """Its records have headers."""
    TASK = "task"
    """The connector's task has no columnar form, or none for these records."""
    CONVERTER = "converter"
    """A converter has no columnar form, or none for this schema."""
    TRANSFORM = "transform"
    """A transform or predicate has no columnar form, or none for these schemas."""
    SCHEMA = "schema"
    """Arrow, or a format, has no columns for a schema."""
    VALUE = "value"
    """A value is one that only the row form handles, such as null in a required field."""
    ERROR = "error"
    """A record cannot be handled. The row form finds it and reports the error."""
    PARTS = "parts"
    """The records would become too many small batches, because of a predicate or of many schemas in turn."""


class Refusal(NamedTuple):
    """Why a batch has no columnar form.

    Attributes:
        reason: the kind of reason.
        text: details for the log.
        field: the path of the field, empty if it is none or not known.
        schema: the schema of the keys or values, if that is known.
    """

    reason: RowFormReason
    text: str = ""
    field: str = ""
    schema: Schema | None = None


class NotColumnar(Exception):  # noqa: N818 (no failure: the row form handles the batch)
    """The columnar form cannot handle a batch as the row form would.

    It and the errors of the row form (``row_form``) are the only ones after which a batch is handled record by record: any other
    exception of a columnar form is an error of its program and fails the task.
    """

    def __init__(self, text: str = "", reason: RowFormReason = RowFormReason.VALUE, *, field: str = "") -> None:
        super().__init__(text)
        self.reason = reason
        self.field = field

    @property
    def refusal(self) -> Refusal:
        """What to keep of it: unlike the exception, it keeps no batch in memory."""
        return Refusal(self.reason, str(self), self.field)

    def inside(self, field: str) -> NotColumnar:
        """Return it for a value in this field of a struct."""
        self.field = f"{field}.{self.field}" if self.field else field
        return self


@contextlib.contextmanager
def row_form() -> Iterator[None]:
    """Call a function of the row form within a columnar form. Whatever it raises, the row form raises for its record, too."""
    try:
        yield
    except NotColumnar:
        raise
    except Exception as error:
        raise NotColumnar(f"{type(error).__name__}: {error}", RowFormReason.ERROR) from error


class Column(NamedTuple):
    """Keys or values of one schema, as an Arrow array of the type that ``sluiceway.columns.arrow_type`` gives for the schema.

    Those without a schema are ``objects``, the same Python values as in the row form, and ``values`` is None. Both are None if
    all of them are null without a schema.
    """

    schema: Schema | None
    values: AnyArray | None
    objects: Sequence[Any] | None = None


class DeferredArray:
    """A field that is None, an array, or a function that returns one of these and is called when the field is first read."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, batch: None, owner: type) -> None: ...

    @overload
    def __get__(self, batch: ColumnBatch, owner: type) -> AnyArray | None: ...

    def __get__(self, batch: ColumnBatch | None, owner: type) -> AnyArray | None:
        if batch is None:
            return None  # the default
        value: AnyArray | Callable[[], AnyArray | None] | None = vars(batch)[self._name]
        if callable(value):
            value = vars(batch)[self._name] = value()
        return value

    def __set__(self, batch: ColumnBatch, value: AnyArray | Callable[[], AnyArray | None] | None) -> None:
        vars(batch)[self._name] = value


@dataclass(frozen=True, kw_only=True)
class ColumnBatch:
    """Successive records of one topic partition with the same key schema and value schema, and without headers.

    ``timestamps`` and ``offsets`` may also be given as functions that return them, so that tasks that do not read them do not
    pay for them. The functions may raise NotColumnar.

    Attributes:
        topic: the topic, after transforms.
        partition: the Kafka partition; None if a source leaves the choice to the producer.
        key: the keys.
        value: the values.
        count: the number of records.
        timestamps: milliseconds since the epoch as int64, null where a record has none; None if no record has one.
        timestamp_type: Kafka's timestamp type, 0 if it is not known, 1 creation time, 2 append time.
        offsets: the records' offsets as int64, in sinks only.
        original_topic: the topic that a sink's records were read from.
    """

    topic: str
    partition: int | None
    key: Column
    value: Column
    count: int
    timestamps: DeferredArray = DeferredArray()
    timestamp_type: int = 0
    offsets: DeferredArray = DeferredArray()
    original_topic: str = ""

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumns:
    """Records that a source task read, as columns.

    Attributes:
        batch: the records.
        source_partition: the source partition of the last record.
        source_offset: the source offset of the last record.
        records: returns the same records in row form, each with its source offset. Called if a batch has no columnar form, or
            is sent in part; not called any more after the next poll.
        more_offsets: the newest source offset of each other source partition that records are from.
    """

    batch: ColumnBatch
    source_partition: Partition | None
    source_offset: Offset | None
    records: Callable[[], Sequence[SourceRecord]]
    more_offsets: Sequence[tuple[Partition, Offset]] = ()

    def __len__(self) -> int:
        return self.batch.count


class RowRecords(list["SourceRecord"]):
    """Records that ``poll_columns`` returns in row form because they have no columnar form, and why."""

    def __init__(self, records: Iterable[SourceRecord], refusal: Refusal) -> None:
        super().__init__(records)
        self.refusal = refusal


@dataclass(slots=True, kw_only=True)
class EncodedRecords:
    """Successive records of one topic that a source task has encoded itself (see ``SourceTaskContext.converters``).

    Attributes:
        topic: the topic.
        keys: the encoded keys.
        values: the encoded values, as many.
        headers: the headers that each record has.
        source_partition: the source partition of all records.
        source_offset: the source offset of the last record. After a failure in between, all are read again.
    """

    topic: str
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Headers
    source_partition: Partition | None
    source_offset: Offset | None

    def __len__(self) -> int:
        return len(self.values)


class ColumnRun(NamedTuple):
    """The decoded messages ``start`` to ``end`` (exclusive).

    ``column`` is None where the row form must decode them, for the reason in ``refusal``.
    """

    start: int
    end: int
    column: Column | None
    refusal: Refusal | None = None


ColumnDecoder = Callable[["AnyArray"], Sequence[ColumnRun]]
"""Decodes an array of binary message parts (null for tombstones) into runs that cover it."""

ColumnEncoder = Callable[["AnyArray"], "AnyArray"]
"""Encodes an array of one schema's values as binary message parts. Raises NotColumnar."""

ColumnTransform = Callable[[ColumnBatch], ColumnBatch]
"""Transforms a batch. Raises NotColumnar."""

ColumnPredicate = Callable[[ColumnBatch], "pa.BooleanArray"]
"""Returns for each record whether a transform applies. Raises NotColumnar."""
