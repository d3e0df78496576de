"""Defines the keys of the folder source, and reads a config."""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.validators import Check, NonEmptyString, OneOf, OrNull, Range
from sluiceway.connectors.files.store import Store, store_of
from sluiceway.connectors.files.store_config import AZURE_LOGIN, GCS_LOGIN, HDFS_LOGIN, S3_LOGIN, SFTP_LOGIN, scheme_of
from sluiceway.connectors.folder.csv_format import CsvFormat
from sluiceway.connectors.folder.formats import Format, LineRecords, MultilineRecords, TextFormat, WholeRecords
from sluiceway.connectors.folder.json_format import JsonLineRecords
from sluiceway.connectors.folder.local_files import LocalStorage
from sluiceway.connectors.folder.readers import CHUNK_BYTES, ReadLimits
from sluiceway.connectors.folder.remote_files import RemoteStorage
from sluiceway.connectors.folder.storage import Storage, root_of_storage
from sluiceway.connectors.folder.tables import ORC, PARQUET, TableFormat
from sluiceway.errors import ConfigError

PATHS = "paths"
EXCLUDE = "paths.exclude"
TOPIC = "topic"
MODE = "mode"
LOGS, FILES = "logs", "files"
FORMAT = "format"
LINES, MULTILINE, CSV, JSON, WHOLE = "lines", "multiline", "csv", "json", "whole"
ENCODING = "encoding"
RECORD_KEY = "record.key"
NONE, FILE = "none", "file"
BATCH_SIZE = "batch.size"
RECORD_MAX_BYTES = "record.max.bytes"
MULTILINE_START = "multiline.start"
MULTILINE_MAX_LINES = "multiline.max.lines"
MULTILINE_TIMEOUT_MS = "multiline.timeout.ms"
CSV_DELIMITER = "csv.delimiter"
CSV_QUOTE = "csv.quote"
CSV_COLUMNS = "csv.columns"
CSV_NULL = "csv.null"
ROTATED_CLOSE_MS = "rotated.close.ms"
COMPLETE_WHEN = "complete.when"
STABLE, RENAMED, MARKER = "stable", "renamed", "marker"
STABLE_MS = "stable.ms"
MARKER_SUFFIX = "marker.suffix"
AFTER_READ = "after.read"
KEEP, MOVE, DELETE = "keep", "move", "delete"
AFTER_READ_FOLDER = "after.read.folder"
FORGET_AFTER_MS = "forget.after.ms"
SCAN_INTERVAL_MS = "scan.interval.ms"

REMOTE = ("hdfs", "viewfs", "sftp", "s3", "gs", "abfs")

_FILES, _RECORDS, _LOGS, _READ = "Files", "Records", "Logs", "After Reading"
_MOST = 2**31 - 1
_high, _medium, _low = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_text = functools.partial(ConfigKey, type=Type.STRING)
_list = functools.partial(ConfigKey, type=Type.LIST)


def _whole(name: str, default: int, low: int, group: str, doc: str) -> ConfigKey:
    return ConfigKey(
        name=name, type=Type.LONG, default=default, validator=Range(low, _MOST), importance=_low, group=group, doc=doc
    )


def _choice(name: str, default: str, choices: tuple[str, ...], group: str, doc: str) -> ConfigKey:
    return _text(name=name, default=default, validator=OneOf(choices), importance=_medium, group=group, doc=doc)


def _check_paths(name: str, value: ConfigValue) -> None:
    if not value:
        raise ConfigError(name, None, "needs the path of a folder, a file, or a pattern such as /var/log/app/*.log")
    for path in value if isinstance(value, list) else []:
        if "\0" in path:
            raise ConfigError(name, None, "must not have NUL characters")
        if root_of_storage(path):
            if scheme_of(path) not in REMOTE:
                raise ConfigError(name, path, f"must be an absolute path, or a URL of {', '.join(REMOTE)}")
        elif not path.startswith("/"):
            raise ConfigError(name, path, "must be absolute, because tasks run in other folders")
        if ".." in PurePosixPath(path).parts:
            raise ConfigError(name, path, "must not have '..'")
        if any("**" in part and part != "**" for part in PurePosixPath(path).parts):
            raise ConfigError(name, path, "may have ** only as the name of a folder, as in /data/**/*.csv")


def _check_encoding(name: str, value: ConfigValue) -> None:
    try:
        same = all(bytes([code]).decode(str(value)) == chr(code) for code in range(128))
    except (LookupError, UnicodeError):
        same = False
    if not same or codecs.lookup(str(value)).name in _NO_TEXT:
        raise ConfigError(name, value, "must be an encoding with ASCII characters as single bytes, such as utf-8 or latin-1")


def _check_pattern(name: str, value: ConfigValue) -> None:
    try:
        re.compile(str(value or ""))
    except re.error as error:
        raise ConfigError(name, value, f"is not a regular expression of Python: {error}") from error


def _check_character(name: str, value: ConfigValue) -> None:
    text = _character(str(value))
    if len(text) != 1 or not text.isascii() or text in "\r\n":
        raise ConfigError(name, value, r"must be one ASCII character, or \t for a tab")


def _check_columns(name: str, value: ConfigValue) -> None:
    columns = value if isinstance(value, list) else []
    if len(set(columns)) < len(columns) or not all(columns):
        raise ConfigError(name, value, "must name each column, and none twice")


DEFINITION = ConfigDef(
    [
        _list(
            name=PATHS,
            validator=Check(_check_paths, "absolute paths"),
            importance=_high,
            group=_FILES,
            doc="Files to read: absolute paths of files, of folders (all files directly in them), or patterns with *, ?, "
            "[...], and ** for folders at any depth. Paths are those of the tasks' machines, or URLs of one storage: "
            "hdfs://host:port/..., hdfs://nameservice/..., sftp://user@host/..., s3://bucket/..., gs://bucket/..., or "
            "abfs://container@account.dfs.core.windows.net/...",
        ),
        _list(
            name=EXCLUDE,
            default=[".*", "*.tmp", "*.part", "*.swp"],
            importance=_medium,
            group=_FILES,
            doc="Patterns of names of files that are not read.",
        ),
        _text(name=TOPIC, validator=NonEmptyString(), importance=_high, group=_FILES, doc="Topic for the records."),
        _text(
            name=MODE,
            validator=OneOf((LOGS, FILES)),
            importance=_high,
            group=_FILES,
            doc="Whether the files are logs, which programs append to and rotate, or files that are complete at some time. A "
            "log is "
            "followed through its rotations; the last line of a file needs no end.",
        ),
        ConfigKey(
            name=SCAN_INTERVAL_MS,
            type=Type.LONG,
            default=None,
            validator=OrNull(Range(10, _MOST)),
            importance=_low,
            group=_FILES,
            doc="Milliseconds after which new files are looked for, and files that do not announce changes are read. By default "
            "1,000, and 10,000 for URLs, where each look is at least one request for each folder.",
        ),
        _choice(
            FORMAT,
            LINES,
            (LINES, MULTILINE, CSV, JSON, PARQUET, ORC, WHOLE),
            _RECORDS,
            "What a record is: a line, lines that belong together, a row of CSV, a line with a JSON value, a row of Parquet or "
            "ORC, or a whole file. "
            "Files "
            "that end with .gz, .bz2, .xz, .zst, or .zip are decompressed.",
        ),
        _text(
            name=ENCODING,
            default="utf-8",
            validator=Check(_check_encoding, "an encoding"),
            importance=_low,
            group=_RECORDS,
            doc="The encoding of text. Bytes that it does not have become U+FFFD. A byte order mark of UTF-8 is skipped.",
        ),
        _choice(
            RECORD_KEY,
            NONE,
            (NONE, FILE),
            _RECORDS,
            "The key of records: none, or the path of the file, with which all records of a log are in one partition, in order.",
        ),
        _whole(BATCH_SIZE, 2000, 1, _RECORDS, "Most records of a batch."),
        _whole(
            RECORD_MAX_BYTES,
            1024 * 1024,
            CHUNK_BYTES,
            _RECORDS,
            "Most bytes of a record. A larger one, such as one whose quote is never closed, is a bad record, and reading "
            "continues on "
            "the next line.",
        ),
        _text(
            name=MULTILINE_START,
            default=r"^\S",
            validator=Check(_check_pattern, "a regular expression"),
            importance=_medium,
            group=_RECORDS,
            doc="Matches the first line of a record of several lines, as Python's re.search. Lines that do not match belong "
            "to the "
            "record before them. By default, those that begin with white space.",
        ),
        _whole(MULTILINE_MAX_LINES, 1000, 1, _RECORDS, "Most lines of a record; the others are another record."),
        _whole(
            MULTILINE_TIMEOUT_MS,
            1000,
            0,
            _RECORDS,
            "Milliseconds without a new line after which the last record of several lines is complete.",
        ),
        _text(
            name=CSV_DELIMITER,
            default=",",
            validator=Check(_check_character, "a character"),
            importance=_medium,
            group=_RECORDS,
            doc=r"The character between fields; \t for a tab.",
        ),
        _text(
            name=CSV_QUOTE,
            default='"',
            validator=Check(_check_character, "a character"),
            importance=_low,
            group=_RECORDS,
            doc="The character around fields that have delimiters, newlines, or quotes.",
        ),
        _list(
            name=CSV_COLUMNS,
            default=[],
            validator=Check(_check_columns, "names"),
            importance=_medium,
            group=_RECORDS,
            doc="The names of the columns of files without a header. By default, the first record of each file has them.",
        ),
        _text(
            name=CSV_NULL,
            default=None,
            importance=_low,
            group=_RECORDS,
            doc="The text of a field that is null; by default none is.",
        ),
        _whole(
            ROTATED_CLOSE_MS,
            1000,
            0,
            _LOGS,
            "Milliseconds that a rotated log must not have changed before the next one is read, so that the last lines of a "
            "program "
            "that still has it open are not lost.",
        ),
        _choice(
            COMPLETE_WHEN,
            STABLE,
            (STABLE, RENAMED, MARKER),
            _READ,
            f"With {MODE}={FILES}, when a file is complete: when it has not changed for stable.ms, as soon as it has its "
            "name, since "
            "it was written under another one, or when a file with its name and marker.suffix exists, before which it is not "
            "read.",
        ),
        _whole(STABLE_MS, 1000, 0, _READ, "Milliseconds without a change after which a file is complete."),
        _text(
            name=MARKER_SUFFIX,
            default=".done",
            validator=NonEmptyString(),
            importance=_low,
            group=_READ,
            doc="What is added to a file's name in its marker's.",
        ),
        _choice(
            AFTER_READ,
            KEEP,
            (KEEP, MOVE, DELETE),
            _READ,
            "What happens to a file when all of its records are in Kafka, and to its marker.",
        ),
        _text(
            name=AFTER_READ_FOLDER,
            default="",
            importance=_medium,
            group=_READ,
            doc="The folder to which files are moved, with the folders that they have below the first one without a pattern. "
            "A file "
            "that is there already is kept: the new one gets a suffix.",
        ),
        _whole(
            FORGET_AFTER_MS,
            24 * 60 * 60 * 1000,
            0,
            _READ,
            "Milliseconds after which a file that was read, and is gone, is forgotten. If it is there again later, it is read "
            "again.",
        ),
        *HDFS_LOGIN,
        *S3_LOGIN,
        *GCS_LOGIN,
        *AZURE_LOGIN,
        *SFTP_LOGIN,
    ]
)

_NO_TEXT = ("idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7")
_ONLY_LOGS = (ROTATED_CLOSE_MS,)
_ONLY_FILES = (COMPLETE_WHEN, STABLE_MS, MARKER_SUFFIX, AFTER_READ, AFTER_READ_FOLDER, FORGET_AFTER_MS)
_OF_STORAGE = {
    ("hdfs", "viewfs"): HDFS_LOGIN,
    ("sftp",): SFTP_LOGIN,
    ("s3",): S3_LOGIN,
    ("gs",): GCS_LOGIN,
    ("abfs",): AZURE_LOGIN,
}
_OF_FORMAT = {MULTILINE: "multiline.", CSV: "csv."}


@dataclass(frozen=True, slots=True)
class FolderOptions:
    """The options of a task.

    Attributes:
        paths: patterns of absolute paths.
        exclude: patterns of names.
        topic: the topic for records.
        follows: whether the files are logs.
        format: how records are found.
        limits: how files are read.
        keys: whether records have the path as their key.
        batch_size: the most records of a batch.
        complete_when: STABLE, RENAMED, or MARKER.
        marker: the suffix of markers.
        after_read: KEEP, MOVE, or DELETE.
        folder: where files are moved.
        forget_seconds: how long a file that is gone is remembered.
        scan_seconds: the time between two scans.
        store: the remote storage with the files, None if they are local.
    """

    paths: tuple[str, ...]
    exclude: tuple[str, ...]
    topic: str
    follows: bool
    format: Format
    limits: ReadLimits
    keys: bool
    batch_size: int
    complete_when: str
    marker: str
    after_read: str
    folder: str
    forget_seconds: float
    scan_seconds: float
    store: Store | None = None

    def storage(self) -> Storage:
        """Return the storage with the files. Raises StorageError, and MissingToolError if a package is missing."""
        if self.store is None:
            return LocalStorage()
        root = root_of_storage(self.paths[0])
        bucket = self.store.root.partition("/")[0]  # of Azure, whose URLs name the account after the container
        prefix = self.paths[0].removeprefix(root).split("/")[1]
        if self.store.scheme == "abfs":
            return RemoteStorage(self.store.remote(), f"{root}/{prefix}", bucket)
        return RemoteStorage(self.store.remote(), root if self.store.login else f"{root}/", "")


def check(config: Mapping[str, str]) -> dict[str, ValidatedValue]:
    """Validate a config without looking at files."""
    found = DEFINITION.validate(config)
    if any(found[key.name].errors for key in DEFINITION):
        return found
    values = {key.name: found[key.name].value for key in DEFINITION}
    for name, message in _conflicts(values, config):
        found[name].errors.append(str(ConfigError(name, values[name], message)))
    return found


def _conflicts(values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the keys to change, and why."""
    found = [*_without_effect(values, config), *_storage_conflicts(values, config)]
    mode, format_, folder = values[MODE], values[FORMAT], str(values[AFTER_READ_FOLDER]).rstrip("/")
    if format_ in (WHOLE, PARQUET, ORC) and mode == LOGS:
        found.append((FORMAT, f"a log is never complete: use {MODE}={FILES}"))
    if values[AFTER_READ] == MOVE and not root_of_storage(folder) and not folder.startswith("/"):
        found.append((AFTER_READ_FOLDER, f"needs an absolute path with {AFTER_READ}={MOVE}"))
    if folder and any(folder in (path.rstrip("/"), path.rpartition("/")[0]) for path in _texts(values[PATHS])):
        found.append((AFTER_READ_FOLDER, "must be another folder than that of the files"))
    if values[CSV_DELIMITER] == values[CSV_QUOTE]:
        found.append((CSV_QUOTE, f"must not be that of {CSV_DELIMITER}"))
    return found


def _storage_conflicts(values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the keys to change because of the storage with the files, and why."""
    paths, found = _texts(values[PATHS]), []
    scheme, storage = scheme_of(paths[0]), _storage_name(paths[0])
    if any(_storage_name(path) != storage for path in paths):
        found.append((PATHS, "must be on one storage"))
    if values[AFTER_READ] == MOVE and _storage_name(str(values[AFTER_READ_FOLDER])) != storage:
        found.append((AFTER_READ_FOLDER, f"must be on the storage of {PATHS}"))
    if scheme != "file" and values[MODE] == LOGS:
        found.append((MODE, f"must be {FILES} for URLs: only local logs are followed"))
    for schemes, login in _OF_STORAGE.items():
        if scheme not in schemes:
            message = f"has an effect only with {PATHS} of {' or '.join(f'{each}://' for each in schemes)}"
            found += [(key.name, message) for key in login if key.name in config]
    return found


def _storage_name(path: str) -> str:
    """Return what paths of one storage have in common: of Azure, an account's container."""
    root = root_of_storage(path)
    return path.split("/")[2] if scheme_of(path) == "abfs" else root


def _without_effect(values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the keys that are set and have no effect, and which value of another key would give them one."""
    needed = {
        **dict.fromkeys(_ONLY_LOGS, (MODE, (LOGS,))),
        **dict.fromkeys(_ONLY_FILES, (MODE, (FILES,))),
        **{key.name: (FORMAT, (of,)) for key in DEFINITION for of, prefix in _OF_FORMAT.items() if key.name.startswith(prefix)},
        ENCODING: (FORMAT, (LINES, MULTILINE, CSV)),
        STABLE_MS: (COMPLETE_WHEN, (STABLE,)),
        MARKER_SUFFIX: (COMPLETE_WHEN, (MARKER,)),
        AFTER_READ_FOLDER: (AFTER_READ, (MOVE,)),
    }
    found = []
    for name, (other, of) in needed.items():
        is_off = values[other] not in of or (name in _ONLY_FILES and values[MODE] != FILES)
        if name in config and is_off:
            found.append(
                (
                    name,
                    f"has an effect only with {other}={' or '.join(of)}"
                    if values[MODE] == FILES or other != COMPLETE_WHEN
                    else f"has an effect only with {MODE}={FILES}",
                )
            )
    return found


def options(config: Mapping[str, str]) -> FolderOptions:
    """Return the options of a config. Raises ConfigError."""
    for validated in check(config).values():
        if validated.errors:
            raise ConfigError(validated.errors[0])
    values = DEFINITION.parse(config)
    follows, paths = values[MODE] == LOGS, _texts(values[PATHS])
    store = store_of(paths[0], values, PATHS) if root_of_storage(paths[0]) else None
    return FolderOptions(
        paths=paths,
        exclude=_texts(values[EXCLUDE]),
        topic=str(values[TOPIC]),
        follows=follows,
        format=_format(values),
        limits=ReadLimits(
            record_bytes=_number(values[RECORD_MAX_BYTES]),
            quiet_seconds=_number(values[ROTATED_CLOSE_MS if follows else STABLE_MS]) / 1000,
            flush_seconds=_number(values[MULTILINE_TIMEOUT_MS]) / 1000 if values[FORMAT] == MULTILINE else float("inf"),
        ),
        keys=values[RECORD_KEY] == FILE,
        batch_size=_number(values[BATCH_SIZE]),
        complete_when=str(values[COMPLETE_WHEN]),
        marker=str(values[MARKER_SUFFIX]),
        after_read=str(values[AFTER_READ]),
        folder=str(values[AFTER_READ_FOLDER]).rstrip("/"),
        forget_seconds=_number(values[FORGET_AFTER_MS]) / 1000,
        scan_seconds=_number(values[SCAN_INTERVAL_MS] or (1000 if store is None else 10_000)) / 1000,
        store=store,
    )


def _format(values: Mapping[str, ConfigValue]) -> Format:
    encoding, name = codecs.lookup(str(values[ENCODING])).name, values[FORMAT]
    if name == CSV:
        null = values[CSV_NULL]
        return CsvFormat(
            _character(str(values[CSV_DELIMITER])),
            _character(str(values[CSV_QUOTE])),
            _texts(values[CSV_COLUMNS]),
            None if null is None else str(null),
            encoding,
        )
    if name == MULTILINE:
        return TextFormat(
            MultilineRecords(re.compile(str(values[MULTILINE_START])), _number(values[MULTILINE_MAX_LINES]), encoding)
        )
    if name in (PARQUET, ORC):
        return TableFormat(str(name))
    if name == JSON:
        return TextFormat(JsonLineRecords())
    return TextFormat(WholeRecords() if name == WHOLE else LineRecords(encoding))


def _character(text: str) -> str:
    return "\t" if text == r"\t" else text


def _texts(value: ConfigValue) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _number(value: ConfigValue) -> int:
    assert isinstance(value, int)  # noqa: S101 (parsed as such)
    return value
