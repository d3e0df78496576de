"""Reads rows of databases by their Python drivers instead of Spark, which spends most of a row's processor time in its JVM."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.columns import WHOLE_NUMBERS, Column, Kind
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.connection_keys import ConnectionSettings
from sluiceway.connectors.jdbc.dialects import parse_url
from sluiceway.connectors.jdbc.dialects.base import Dialect
from sluiceway.connectors.jdbc.dialects.sql import Statement
from sluiceway.connectors.jdbc.dialects.values import UTC
from sluiceway.connectors.jdbc.source.errors import as_connect_error
from sluiceway.connectors.spark.arrow_schema import arrow_schema
from sluiceway.connectors.spark.ranges import ValueRange
from sluiceway.connectors.spark.source_config import SourceConfig
from sluiceway.errors import ConnectError, DataError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

log = logging.getLogger(__name__)

_BATCH_ROWS = 10_000  # as spark.sql.execution.arrow.maxRecordsPerBatch; with 2,000, a row takes a tenth longer
_DIALECTS = ("postgresql", "mysql", "sqlite")  # those whose values are compared with Spark's by a test
_OPTIONS = frozenset({"url", "driver", "user", "password"})  # all others are for Java's driver or for Spark

_DECIMAL_OF_64_BITS = (20, 0)  # as which Spark reads unsigned integers, and all of SQLite's BIGINT
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"  # where Spark keeps a column's type if it is char or varchar

# The kinds of columns whose values are those that Spark reads, by Spark's types.
_SAME_IN_BOTH: Mapping[str, tuple[Kind, ...]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), WHOLE_NUMBERS),
    "float": (Kind.FLOAT32,),
    "double": (Kind.FLOAT64,),
    "boolean": (Kind.BOOLEAN,),
    "string": (Kind.STRING,),
    "binary": (Kind.BYTES,),
    "date": (Kind.DATE,),
    "decimal": (Kind.DECIMAL, Kind.INT64),
    "timestamp": (Kind.TIMESTAMP,),
}


@dataclass(frozen=True, slots=True)
class JdbcReader:
    """A ``SplitReader`` of a range of a table's or query's rows. Its repr shows no password.

    ``rows`` follows FROM. ``schema`` has the columns of the DataFrame that it replaces, and ``columns`` the database's.
    """

    settings: ConnectionSettings
    rows: str
    columns: tuple[Column, ...]
    schema: pa.Schema
    range: ValueRange

    def batches(self) -> Iterator[pa.RecordBatch]:
        database = Database(self.settings)
        try:
            with closing(database.connect()) as connection:
                raw: Any = connection.connection.driver_connection
                database.dialect.prepare_for_reading(raw, UTC)
                database.dialect.prepare_for_columns(raw)
                with database.dialect.rows(raw, self._statement(database.dialect)) as rows:
                    while batch := rows.fetchmany(_BATCH_ROWS):
                        yield self._record_batch(database.dialect, batch)
        except Exception as error:  # whose class is the driver's
            explained = as_connect_error(error, database, self.rows)
            if explained is error:
                raise
            raise explained from error

    def _statement(self, dialect: Dialect) -> Statement:
        by, low, high = self.range
        column = dialect.delimited(by)
        names = ", ".join(dialect.delimited(column.name) for column in self.columns)
        sql = f"SELECT {names} FROM {self.rows} WHERE {column} > {low} AND {column} <= {high}"  # noqa: S608 (as Spark does)
        return Statement(dialect.with_parameters(sql))

    def _record_batch(self, dialect: Dialect, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
        import pyarrow as pa

        arrays = []
        for column, field, values in zip(self.columns, self.schema, zip(*rows, strict=True), strict=True):
            try:
                arrays.append(_array(dialect, column, values, field.type))
            except (pa.ArrowException, ArithmeticError, TypeError, ValueError, AttributeError, DataError) as error:
                raise ConnectError(
                    f"A value of {column.name} ({column.type_text}) in {self.rows} is no {field.type}: {error}. Correct it, or "
                    "cast the column in a query."
                ) from error
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class JdbcReaders:
    """Makes the readers of one table or query, whose columns it asks the database for."""

    def __init__(self, config: SourceConfig) -> None:
        self._config = config
        self._why_not = ""
        self._settings: ConnectionSettings | None = None
        try:
            self._settings = _settings(config)
        except ConnectError as error:
            self._log(str(error))

    def readers(self, frame: DataFrame, ranges: Sequence[ValueRange]) -> list[JdbcReader] | None:
        """Return the readers of ranges of the rows of ``frame``; None if Spark must read them, as it may read other values."""
        settings = self._settings
        if settings is None:
            return None
        rows = self._config.rows
        try:
            columns = _columns(frame, settings, rows)
        except ConnectError as error:
            self._log(str(error))
            return None
        schema = arrow_schema(frame.schema)
        return [JdbcReader(settings, rows, columns, schema, each) for each in ranges]

    def _log(self, reason: str) -> None:
        if reason != self._why_not:
            log.info("Spark reads the rows itself, in more processor time than a Python driver would: %s", reason)
        self._why_not = reason


def _array(dialect: Dialect, column: Column, values: Sequence[Any], kind: Any) -> Any:
    import pyarrow as pa

    from sluiceway.connectors.jdbc.source.column_rows import converted

    if column.type.kind is Kind.STRING and bytes in set(map(type, values)):
        with suppress(pa.ArrowException):
            return pa.array(values, pa.binary()).cast(kind)
        # ``reader`` replaces what is not UTF-8, as Java does.
    return pa.array(converted(column.type.kind, dialect.reader(column.type), values), kind)


def _settings(config: SourceConfig) -> ConnectionSettings:
    """Return how the Python driver connects. Raises ConnectError if it may not see what Java's driver sees."""
    options = {name.lower(): value for name, value in config.options.items()}
    others = sorted(options.keys() - _OPTIONS)
    if others:
        raise ConnectError(f"{', '.join(others)} can only be given to Spark.")
    url = parse_url(options.get("url", ""), options.get("user"), options.get("password"))
    if url.dialect not in _DIALECTS:
        raise ConnectError(f"It is not known whether a Python driver reads the same values from {url.dialect}.")
    return ConnectionSettings(url, attempts=1)  # the runtime tries a round again


def _columns(frame: DataFrame, settings: ConnectionSettings, rows: str) -> tuple[Column, ...]:
    """Return the database's columns. Raises ConnectError unless their values are those that Spark reads."""
    database = Database(settings)
    with closing(database.connect()) as connection:
        columns = database.dialect.query_columns(connection, f"SELECT * FROM {rows}")  # noqa: S608 (the config's own)
    fields = frame.schema.fields
    if [column.name for column in columns] != [field.name for field in fields]:
        raise ConnectError(f"Spark sees the columns {frame.columns}, and the Python driver {[each.name for each in columns]}.")
    utc = _is_utc(frame)
    for column, field in zip(columns, fields, strict=True):
        if not _same(database.dialect, column, field, utc=utc):
            kind = field.dataType.simpleString()
            raise ConnectError(f"Spark may read other values from {column.name} ({column.type_text}), as {kind}.")
    return tuple(columns)


def _same(dialect: Dialect, column: Column, field: StructField, *, utc: bool) -> bool:
    from pyspark.sql.types import DecimalType

    kind, own = field.dataType, column.type
    if own.as_text or own.kind not in _SAME_IN_BOTH.get(kind.typeName().partition("(")[0], ()):
        return False
    if str(field.metadata.get(_DECLARED, "")).startswith("char"):
        return False  # Spark pads it with spaces
    if isinstance(kind, DecimalType) and own.kind is Kind.DECIMAL:
        return dialect.exact_decimals and (own.precision, own.scale) == (kind.precision, kind.scale)
    if isinstance(kind, DecimalType):
        return (kind.precision, kind.scale) == _DECIMAL_OF_64_BITS
    if dialect.name == "sqlite" and own.kind in (Kind.DATE, Kind.TIMESTAMP):
        return False  # texts or numbers, which the two read in different forms
    # Java's drivers take timestamps without a zone, and MySQL's all of them, for some of the JVM's zone.
    return own.kind is not Kind.TIMESTAMP or utc or (own.zoned and dialect.name != "mysql")


def _is_utc(frame: DataFrame) -> bool:
    jvm: Any = frame.sparkSession._jvm  # no public way to the JVM's time zone
    return str(jvm.java.util.TimeZone.getDefault().toZoneId().normalized()) in ("Z", "UTC")
