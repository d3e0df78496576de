"""Defines the keys that all file sinks share. Names and meanings are those of Confluent's sinks for files."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import replace
from zoneinfo import ZoneInfo

from sluiceway.api.outage import UNREACHABLE_MS
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import Check, EachOf, EnumText, NonEmptyString, OneOf, Range
from sluiceway.connectors.files import keys
from sluiceway.connectors.files.partitioners.path_format import path_formatter
from sluiceway.connectors.null_values import replace_nulls
from sluiceway.errors import ConfigError

PARTITIONERS = ("DefaultPartitioner", "FieldPartitioner", "TimeBasedPartitioner", "DailyPartitioner", "HourlyPartitioner")
COMPATIBILITY = ("NONE", "BACKWARD", "FORWARD", "FULL")
EXTRACTORS = ("Wallclock", "Record", "RecordField")
PARQUET_CODECS = ("none", "snappy", "gzip", "brotli", "lz4", "zstd")
AVRO_CODECS = ("null", "deflate", "snappy", "bzip2")
ORC_CODECS = ("uncompressed", "snappy", "zlib", "lz4", "zstd")
LINES_CODECS = ("none", "gzip")
DECIMAL_FORMATS = ("BASE64", "NUMERIC")

_ROTATION, _NAMES, _PARTITIONS, _DATA, _RETRIES = "Commits", "Names", "Partitioner", "Data", "Retries"
_PACKAGE = "io.confluent.connect.storage.partitioner."
_EXTRACTOR_CLASS = f"{_PACKAGE}TimeBasedPartitioner$"

text = functools.partial(ConfigKey, type=Type.STRING)
flag = functools.partial(ConfigKey, type=Type.BOOLEAN)
whole = functools.partial(ConfigKey, type=Type.INT)
long = functools.partial(ConfigKey, type=Type.LONG)
secret = functools.partial(ConfigKey, type=Type.PASSWORD, default=None)


def simple_name(value: object) -> str:
    """Return the simple name of a Java class."""
    return str(value).rpartition(".")[2]


def one_of_classes(names: Collection[str], packages: Collection[str]) -> Check:
    """Accept class names of these packages, or simple names."""

    def check(name: str, value: ConfigValue) -> None:
        package, _, simple = str(value).rpartition(".")
        if simple not in names or (package and not any(package.startswith(each.rstrip(".")) for each in packages)):
            raise ConfigError(name, value, f"is not supported; use one of {', '.join(names)}")

    return Check(check, f"one of {', '.join(names)}")


def extractor_name(value: object) -> str:
    """Return the short name of a timestamp extractor."""
    return str(value).removeprefix(_EXTRACTOR_CLASS).removesuffix("TimestampExtractor")


def _extractor(name: str, value: ConfigValue) -> None:
    if extractor_name(value) not in EXTRACTORS:
        raise ConfigError(name, value, f"is not supported; use one of {', '.join(EXTRACTORS)}")


def _time_zone(name: str, value: ConfigValue) -> None:
    if not value:
        return
    try:
        ZoneInfo(str(value))
    except (KeyError, ValueError, OSError) as error:
        raise ConfigError(name, value, "is not the name of a time zone, such as UTC or Europe/Berlin") from error


def _path_format(name: str, value: ConfigValue) -> None:
    if not value:
        return
    try:
        path_formatter(str(value), ZoneInfo("UTC"))
    except ValueError as error:
        raise ConfigError(name, value, str(error)) from error


def _off_or_positive(name: str, value: ConfigValue) -> None:
    if isinstance(value, int) and value < 1 and value != -1:
        raise ConfigError(name, value, "has to be positive, or -1 to switch it off")


def no_placeholder(name: str, value: ConfigValue) -> None:
    """Refuse placeholders, which Confluent's sinks replace."""
    if "${" in str(value):
        raise ConfigError(name, value, "must not contain ${...}; the topic's name is always the next folder")


def flush_size(default: int | None) -> ConfigKey:
    """Return ``flush.size``, without a default as in Confluent's sinks if it is None."""
    key = whole(
        name=keys.FLUSH_SIZE,
        validator=Range(1),
        importance=Importance.HIGH,
        group=_ROTATION,
        doc="Number of records of a topic partition after which its open files are committed.",
    )
    return key if default is None else changed(key, default=default)


def changed(key: ConfigKey, *, default: ConfigValue) -> ConfigKey:
    """Return a key with another default."""
    return replace(key, default=default)


_WHEN = Check(_off_or_positive, "[-1, 1, ...]")

ROTATION = ConfigDef(
    [
        long(
            name=keys.ROTATE_INTERVAL_MS,
            default=-1,
            validator=_WHEN,
            importance=Importance.HIGH,
            group=_ROTATION,
            doc="Milliseconds between the first record of the open files and the record that ends them, by the timestamps that "
            "timestamp.extractor returns; by the wall clock with other partitioners than time-based ones. -1 is off.",
        ),
        long(
            name=keys.ROTATE_SCHEDULE_INTERVAL_MS,
            default=-1,
            validator=_WHEN,
            importance=Importance.MEDIUM,
            group=_ROTATION,
            doc="Milliseconds between commits by the wall clock, counted from midnight in the time zone of timezone. Files are "
            "committed even if no record arrives. -1 is off.",
        ),
        long(
            name=keys.ROTATE_BYTES,
            default=-1,
            validator=_WHEN,
            importance=Importance.LOW,
            group=_ROTATION,
            doc="Size of a file, in bytes, from which on the open files of its topic partition are committed. A file may exceed "
            "it by one batch and what its format keeps in memory. -1 is off.",
        ),
        long(
            name=keys.RETRY_BACKOFF_MS,
            default=5000,
            validator=Range(0),
            importance=Importance.LOW,
            group=_RETRIES,
            doc="Milliseconds to wait after the storage has failed.",
        ),
        long(
            name=UNREACHABLE_MS,
            default=3_600_000,
            validator=Range(-1),
            importance=Importance.LOW,
            group=_RETRIES,
            doc="Milliseconds to wait for a storage that is away, full or read-only before the task fails; -1 is unlimited. "
            "Meanwhile the task reads nothing from Kafka.",
        ),
    ]
)

NAMES = ConfigDef(
    [
        text(
            name=keys.TOPICS_DIR,
            default="topics",
            validator=Check(no_placeholder, "a path without ${...}"),
            importance=Importance.HIGH,
            group=_NAMES,
            doc="Folder that has a folder for each topic; relative to the storage's path.",
        ),
        text(
            name=keys.LOGS_DIR,
            default="_sluiceway",
            validator=EachOf([NonEmptyString(), Check(no_placeholder, "a path without ${...}")]),
            importance=Importance.LOW,
            group=_NAMES,
            doc="Folder of the commit logs and of unfinished files, relative to the storage's path. It says which offsets the "
            "files contain: do not delete it while the connector exists.",
        ),
        text(
            name=keys.DIRECTORY_DELIM,
            default="/",
            validator=OneOf(["/"]),
            importance=Importance.MEDIUM,
            group=_NAMES,
            doc="Separator of folders; always a slash.",
        ),
        text(
            name=keys.FILE_DELIM,
            default="+",
            validator=NonEmptyString(),
            importance=Importance.MEDIUM,
            group=_NAMES,
            doc="Separator of topic, partition and offsets in the names of files.",
        ),
        whole(
            name=keys.ZERO_PAD,
            default=10,
            validator=Range(0, 20),
            importance=Importance.LOW,
            group=_NAMES,
            doc="Least number of digits of the offsets in the names of files.",
        ),
    ]
)

PARTITIONING = ConfigDef(
    [
        text(
            name=keys.PARTITIONER_CLASS,
            default="DefaultPartitioner",
            validator=one_of_classes(PARTITIONERS, [_PACKAGE, "io.confluent.connect.hdfs"]),
            importance=Importance.HIGH,
            group=_PARTITIONS,
            doc="Folders below a topic's folder. DefaultPartitioner: partition=<Kafka partition>. FieldPartitioner: "
            "<field>=<value>. TimeBasedPartitioner: the time in the form of path.format. DailyPartitioner and HourlyPartitioner: "
            "year=, month=, day= and hour=.",
        ),
        ConfigKey(
            name=keys.PARTITION_FIELD,
            type=Type.LIST,
            default=[],
            importance=Importance.MEDIUM,
            group=_PARTITIONS,
            doc="Fields of the value whose values name the folders of the FieldPartitioner; dots lead into nested structs.",
        ),
        long(
            name=keys.PARTITION_DURATION,
            default=-1,
            validator=_WHEN,
            importance=Importance.MEDIUM,
            group=_PARTITIONS,
            doc="Milliseconds that a folder of the TimeBasedPartitioner covers.",
        ),
        text(
            name=keys.PATH_FORMAT,
            default="",
            validator=Check(_path_format, "a pattern of Joda-Time"),
            importance=Importance.MEDIUM,
            group=_PARTITIONS,
            doc="Folders of the TimeBasedPartitioner as a pattern of Joda-Time, such as 'year'=YYYY/'month'=MM/'day'=dd.",
        ),
        text(
            name=keys.LOCALE,
            default="",
            importance=Importance.MEDIUM,
            group=_PARTITIONS,
            doc="Language of names in path.format, such as en-US. Patterns with names of months or days need English.",
        ),
        text(
            name=keys.TIMEZONE,
            default="",
            validator=Check(_time_zone, "the name of a time zone"),
            importance=Importance.MEDIUM,
            group=_PARTITIONS,
            doc="Time zone of time-based folders and of rotate.schedule.interval.ms, such as UTC or Europe/Berlin.",
        ),
        text(
            name=keys.TIMESTAMP_EXTRACTOR,
            default="Wallclock",
            validator=Check(_extractor, f"one of {', '.join(EXTRACTORS)}"),
            importance=Importance.MEDIUM,
            group=_PARTITIONS,
            doc="Time of a record. Wallclock: when the task writes it. Record: its timestamp in Kafka. RecordField: "
            "timestamp.field of its value.",
        ),
        text(
            name=keys.TIMESTAMP_FIELD,
            default="timestamp",
            importance=Importance.MEDIUM,
            group=_PARTITIONS,
            doc="Field with the time of a record: a Timestamp, milliseconds since the epoch, or text in ISO 8601.",
        ),
    ]
)

DATA = ConfigDef(
    [
        text(
            name=keys.SCHEMA_COMPATIBILITY,
            default="NONE",
            validator=OneOf(COMPATIBILITY),
            importance=Importance.HIGH,
            group=_DATA,
            doc="What happens to a value with another schema than that of the open file. NONE: it is written to another file. "
            "BACKWARD, FULL: older versions are projected to the newest version so far. FORWARD: newer versions are projected to "
            "the oldest version so far. All but NONE need schemas with versions. JSON and text files take any schema.",
        ),
        whole(
            name=keys.SCHEMA_CACHE_SIZE,
            default=1000,
            importance=Importance.LOW,
            group=_DATA,
            doc="Has no effect; accepted so that configs of Kafka Connect can be used. All schemas are cached.",
        ),
        text(
            name=keys.NULL_VALUES,
            default="fail",
            validator=EnumText("ignore", "fail"),
            importance=Importance.LOW,
            group=_DATA,
            doc="What happens to a record without a value (a tombstone), which files cannot hold. ignore: it is skipped. fail: "
            "it is handled as a bad record.",
        ),
        replace_nulls(_DATA),
    ]
)

COMMON = ROTATION + NAMES + PARTITIONING + DATA


def codec(name: str, default: str, allowed: Collection[str], doc: str) -> ConfigKey:
    """Return the key of a compression codec."""
    return text(name=name, default=default, validator=OneOf(allowed), importance=Importance.LOW, group=_DATA, doc=doc)


PARQUET = codec(keys.PARQUET_CODEC, "snappy", PARQUET_CODECS, "Compression of Parquet files.")
AVRO = (
    codec(keys.AVRO_CODEC, "null", AVRO_CODECS, "Compression of Avro files."),
    flag(
        name=keys.AVRO_META_DATA,
        default=True,
        importance=Importance.LOW,
        group=_DATA,
        doc="Whether schemas of Avro files have the names, versions, and parameters of Connect's schemas, as connect.* "
        "properties.",
    ),
    flag(
        name=keys.AVRO_ENHANCED,
        default=False,
        importance=Importance.LOW,
        group=_DATA,
        doc="Whether enums of the AvroConverter are enums in Avro files, too; otherwise they are strings.",
    ),
    flag(
        name=keys.AVRO_OPTIONAL_MAP_KEYS,
        default=False,
        importance=Importance.LOW,
        group=_DATA,
        doc="Whether maps with optional strings as keys are maps in Avro files; otherwise they are arrays of entries.",
    ),
)
ORC = codec(keys.ORC_CODEC, "zlib", ORC_CODECS, "Compression of ORC files.")
LINES = codec(keys.LINES_CODEC, "none", LINES_CODECS, "Compression of files of lines; gzip adds .gz to their names.")
DECIMALS = text(
    name=keys.DECIMAL_FORMAT,
    default="BASE64",
    validator=EnumText(*DECIMAL_FORMATS),
    importance=Importance.LOW,
    group=_DATA,
    doc="Form of Decimal values in JSON files: their bytes in base64, or numbers.",
)
CSV = (
    text(
        name=keys.CSV_DELIMITER,
        default=",",
        validator=NonEmptyString(),
        importance=Importance.LOW,
        group=_DATA,
        doc="Character between two values.",
    ),
    flag(name=keys.CSV_HEADER, default=True, importance=Importance.LOW, group=_DATA, doc="Whether files start with the names."),
)
BYTES = (
    text(
        name=keys.BYTES_EXTENSION,
        default=".bin",
        importance=Importance.LOW,
        group=_DATA,
        doc="End of the names of files of the ByteArrayFormat.",
    ),
    text(
        name=keys.BYTES_SEPARATOR,
        default="\n",
        importance=Importance.LOW,
        group=_DATA,
        doc="Text after each record in files of the ByteArrayFormat.",
    ),
)
