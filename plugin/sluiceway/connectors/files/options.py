"""The typed values of a file sink's config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from sluiceway.api.outage import UNREACHABLE_MS
from sluiceway.config.definition import ConfigDef, ConfigValue, ValidatedValue
from sluiceway.config.intervals import IntervalRun
from sluiceway.connectors.files import keys
from sluiceway.connectors.files.common_config import extractor_name, simple_name
from sluiceway.connectors.files.hive.config import HiveOptions, hive_conflicts, hive_options
from sluiceway.connectors.files.naming import FileNames, interval_mark
from sluiceway.connectors.files.partitioners import DefaultPartitioner, FieldPartitioner, Partitioner, TimeBasedPartitioner
from sluiceway.connectors.files.partitioners.path_format import is_english, needs_locale
from sluiceway.connectors.files.partitioners.time_based import TimestampExtractor
from sluiceway.connectors.files.rotation import RotationLimits
from sluiceway.connectors.files.store import Store
from sluiceway.connectors.files.store_config import CONFLUENT_FORMATS
from sluiceway.connectors.null_values import REPLACE_NULLS
from sluiceway.errors import ConfigError

Values = Mapping[str, ConfigValue]

_HOUR = 3_600_000
_DAILY = "'year'=YYYY/'month'=MM/'day'=dd"
_FIXED = {"DailyPartitioner": (24 * _HOUR, _DAILY), "HourlyPartitioner": (_HOUR, f"{_DAILY}/'hour'=HH")}
_FORMAT_DEFAULTS = {
    keys.PARQUET_CODEC: "snappy",
    keys.AVRO_CODEC: "null",
    keys.AVRO_META_DATA: "true",
    keys.AVRO_ENHANCED: "false",
    keys.AVRO_OPTIONAL_MAP_KEYS: "false",
    keys.ORC_CODEC: "zlib",
    keys.LINES_CODEC: "none",
    keys.CSV_DELIMITER: ",",
    keys.CSV_HEADER: "true",
    keys.BYTES_EXTENSION: ".bin",
    keys.BYTES_SEPARATOR: "\n",
    keys.DECIMAL_FORMAT: "BASE64",
    REPLACE_NULLS: "true",
}


@dataclass(frozen=True, slots=True)
class SinkKind:
    """The differences between the classes of file sinks.

    Attributes:
        definition: the keys.
        store: returns the storage that the keys describe.
        format: the class of the format; empty if ``format.class`` says it.
        last_in_name: whether names of files end with the last offset.
        codec_in_name: whether names of Parquet files have the codec, as ``.snappy.parquet``.
    """

    definition: ConfigDef
    store: Callable[[Values], Store]
    format: str = ""
    last_in_name: bool = True
    codec_in_name: bool = False


@dataclass(frozen=True, slots=True)
class FileOptions:
    """The typed values of a config; times in milliseconds, None for unlimited. The repr shows no secret."""

    name: str
    store: Store
    format: str
    format_options: Mapping[str, str]
    names: FileNames
    logs_dir: str
    limits: RotationLimits
    partitioner: Partitioner
    compatibility: str
    skip_nulls: bool
    backoff: int
    unreachable: float | None
    hive: HiveOptions | None

    @classmethod
    def of(cls, config: Mapping[str, str], kind: SinkKind) -> FileOptions:
        """Return the values of a config. Raises ConfigError for an invalid value and for keys that conflict."""
        values = kind.definition.parse(config)
        problems = conflicts(values, kind)
        if problems:
            name, message = next(iter(problems.items()))
            raise ConfigError(name, values[name], message)
        store = kind.store(values)
        run = IntervalRun.of(config)
        names = FileNames(
            store.path(str(values[keys.TOPICS_DIR])),
            str(values[keys.DIRECTORY_DELIM]),
            str(values[keys.FILE_DELIM]),
            _whole(values, keys.ZERO_PAD),
            kind.last_in_name,
            "" if run is None else interval_mark(run),
        )
        partitioner = _partitioner(values)
        unreachable = _whole(values, UNREACHABLE_MS)
        return cls(
            config.get("name", ""),
            store,
            _format(values, kind),
            _format_options(values, codec_in_name=kind.codec_in_name),
            names,
            store.path(str(values[keys.LOGS_DIR])),
            _limits(values, partitioner),
            partitioner,
            str(values[keys.SCHEMA_COMPATIBILITY]),
            str(values[keys.NULL_VALUES]).lower() == "ignore",
            _whole(values, keys.RETRY_BACKOFF_MS),
            None if unreachable < 0 else unreachable / 1000,
            hive_options(values),
        )


def add_conflicts(found: dict[str, ValidatedValue], kind: SinkKind) -> dict[str, ValidatedValue]:
    """Add the errors of conflicting keys to the results of validation, unless single keys have errors."""
    if not any(found[key.name].errors for key in kind.definition):
        for name, message in conflicts({key.name: found[key.name].value for key in kind.definition}, kind).items():
            found[name].errors.append(str(ConfigError(name, found[name].value, message)))
    return found


def conflicts(values: Values, kind: SinkKind) -> dict[str, str]:
    """Return the errors of keys that conflict, by the key to change."""
    problems: dict[str, str] = {}
    partitioner = simple_name(values[keys.PARTITIONER_CLASS])
    if partitioner == "FieldPartitioner" and not values[keys.PARTITION_FIELD]:
        problems[keys.PARTITION_FIELD] = "is needed for the FieldPartitioner"
    if partitioner == "TimeBasedPartitioner":
        if _whole(values, keys.PARTITION_DURATION) < 1:
            problems[keys.PARTITION_DURATION] = "is needed for the TimeBasedPartitioner, such as 3600000"
        if not str(values[keys.PATH_FORMAT]).strip("/ "):
            problems[keys.PATH_FORMAT] = f"is needed for the TimeBasedPartitioner, such as {_DAILY}"
    timed = partitioner in ("TimeBasedPartitioner", *_FIXED)
    if not values[keys.TIMEZONE] and (timed or _whole(values, keys.ROTATE_SCHEDULE_INTERVAL_MS) > 0):
        problems[keys.TIMEZONE] = f"is needed for time-based partitioners and for {keys.ROTATE_SCHEDULE_INTERVAL_MS}, such as UTC"
    if timed and needs_locale(str(values[keys.PATH_FORMAT])) and not is_english(str(values[keys.LOCALE]) or "en"):
        problems[keys.LOCALE] = "is not supported for patterns with names; use numbers in path.format, or en"
    problems |= _store_conflicts(values)
    return problems or hive_conflicts(values, _format(values, kind), _partitioner(values))


def _store_conflicts(values: Values) -> dict[str, str]:
    problems = {}
    if keys.HDFS_URL in values:
        url = str(values[keys.STORE_URL] or values[keys.HDFS_URL] or "")
        if not url.startswith(("hdfs://", "viewfs://")):
            problems[keys.STORE_URL] = "has to be the URL of HDFS, such as hdfs://namenode:8020"
    if values.get(keys.HDFS_KERBEROS) and not values[keys.HDFS_PRINCIPAL] and values[keys.HDFS_KEYTAB]:
        problems[keys.HDFS_PRINCIPAL] = f"is needed with {keys.HDFS_KEYTAB}"
    if values.get(keys.CSV_DELIMITER) is not None and len(str(values[keys.CSV_DELIMITER]).encode()) != 1:
        problems[keys.CSV_DELIMITER] = "has to be one ASCII character"
    return problems


def _format(values: Values, kind: SinkKind) -> str:
    return kind.format or CONFLUENT_FORMATS[simple_name(values[keys.FORMAT_CLASS])]


def _partitioner(values: Values) -> Partitioner:
    name = simple_name(values[keys.PARTITIONER_CLASS])
    if name == "DefaultPartitioner":
        return DefaultPartitioner()
    delimiter = str(values[keys.DIRECTORY_DELIM])
    if name == "FieldPartitioner":
        fields = values[keys.PARTITION_FIELD]
        return FieldPartitioner(fields if isinstance(fields, list) else [], delimiter, replace_nulls=bool(values[REPLACE_NULLS]))
    duration, pattern = _FIXED.get(name, (_whole(values, keys.PARTITION_DURATION), str(values[keys.PATH_FORMAT])))
    return TimeBasedPartitioner(
        duration,
        pattern.removesuffix(delimiter),
        ZoneInfo(str(values[keys.TIMEZONE])),
        TimestampExtractor(extractor_name(values[keys.TIMESTAMP_EXTRACTOR])),
        str(values[keys.TIMESTAMP_FIELD]),
        replace_nulls=bool(values[REPLACE_NULLS]),
    )


def _limits(values: Values, partitioner: Partitioner) -> RotationLimits:
    return RotationLimits(
        _whole(values, keys.FLUSH_SIZE),
        _limit(values, keys.ROTATE_BYTES),
        _limit(values, keys.ROTATE_INTERVAL_MS),
        _limit(values, keys.ROTATE_SCHEDULE_INTERVAL_MS),
        ZoneInfo(str(values[keys.TIMEZONE]) or "UTC"),
        partitioner.by_record_time,
    )


def _format_options(values: Values, *, codec_in_name: bool) -> dict[str, str]:
    found = {name: _text(values.get(name, default)) for name, default in _FORMAT_DEFAULTS.items()}
    for name in (keys.S3_COMPRESSION, keys.GCS_COMPRESSION, keys.AZURE_COMPRESSION):
        if name in values:
            found[keys.LINES_CODEC] = str(values[name])
    return {**found, keys.CODEC_IN_NAME: str(codec_in_name).lower()}


def _text(value: ConfigValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _whole(values: Values, name: str) -> int:
    value = values[name]
    assert isinstance(value, int)  # noqa: S101 (parsed as such)
    return value


def _limit(values: Values, name: str) -> int | None:
    number = _whole(values, name)
    return None if number < 0 else number
