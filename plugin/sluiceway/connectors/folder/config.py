"""Defines the keys of the folder source, and reads a config."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Type, ValidatedValue
from sluiceway.config.intervals import FIELD
from sluiceway.config.validators import Check, NonEmptyString, OneOf, OrNull, Range
from sluiceway.connectors.files.store import Store, store_of
from sluiceway.connectors.files.store_config import AZURE_LOGIN, GCS_LOGIN, HDFS_LOGIN, S3_LOGIN, SFTP_LOGIN, scheme_of
from sluiceway.connectors.folder.format_config import (
    BATCH_SIZE,
    CSV,
    ENCODING,
    FIXED,
    FORMAT,
    FORMAT_KEYS,
    HIGH,
    JSON,
    JSON_ARRAY,
    LINES,
    LOW,
    MEDIUM,
    MOST,
    MULTILINE,
    MULTILINE_TIMEOUT_MS,
    NOT_OF_LOGS,
    OF_FORMAT,
    RECORDS,
    WHOLE,
    XML,
    choice_key,
    format_conflicts,
    format_of,
    list_key,
    number,
    number_key,
    text_key,
    texts,
)
from sluiceway.connectors.folder.formats import Format
from sluiceway.connectors.folder.key_listing import KeyListing
from sluiceway.connectors.folder.listing import MAGIC, Listing
from sluiceway.connectors.folder.local_files import LocalStorage
from sluiceway.connectors.folder.path_time import is_format, path_time
from sluiceway.connectors.folder.readers import CHUNK_BYTES, ReadLimits
from sluiceway.connectors.folder.remote_files import RemoteStorage
from sluiceway.connectors.folder.s3_config import (
    AFTER_READ_TAG,
    ASCENDING,
    LISTING_ORDER,
    LISTING_WHOLE_INTERVAL_MS,
    NOTIFICATIONS_QUEUE_URL,
    S3_READING,
    tag_of,
)
from sluiceway.connectors.folder.storage import Storage, root_of_storage
from sluiceway.connectors.folder.tables import AVRO, ORC, PARQUET
from sluiceway.errors import ConfigError

PATHS = "paths"
EXCLUDE = "paths.exclude"
TOPIC = "topic"
MODE = "mode"
LOGS, FILES = "logs", "files"
RECORD_KEY = "record.key"
NONE, FILE = "none", "file"
RECORD_MAX_BYTES = "record.max.bytes"
ROTATED_CLOSE_MS = "rotated.close.ms"
COMPLETE_WHEN = "complete.when"
STABLE, RENAMED, MARKER = "stable", "renamed", "marker"
STABLE_MS = "stable.ms"
MARKER_SUFFIX = "marker.suffix"
AFTER_READ = "after.read"
KEEP, MOVE, DELETE, TAG = "keep", "move", "delete", "tag"
AFTER_READ_FOLDER = "after.read.folder"
FORGET_AFTER_MS = "forget.after.ms"
SCAN_INTERVAL_MS = "scan.interval.ms"
PATH_TIME = "path.time.format"
PART_BYTES = "part.bytes"

_TABLES = (PARQUET, ORC, AVRO)
_IN_PARTS = (LINES, CSV, FIXED, JSON, *_TABLES)
_TABLE_PART_BYTES = 256 * 1024 * 1024

REMOTE = ("hdfs", "viewfs", "sftp", "s3", "gs", "abfs")

_FILES, _LOGS, _READ = "Files", "Logs", "After Reading"


def _check_url(name: str, url: str) -> None:
    if scheme_of(url) not in REMOTE:
        raise ConfigError(name, url, f"must be an absolute path, or a URL of {', '.join(REMOTE)}")
    try:
        parts = urlsplit(url)
        has_folder = parts.port is not None or bool(parts.path) or bool(parts.netloc)
    except ValueError as error:
        raise ConfigError(name, None, f"has a URL that cannot be read: {error}") from error
    if parts.password is not None:
        raise ConfigError(name, None, "must not have a password, which records would show: use sftp.password")
    if not has_folder or (scheme_of(url) in ("hdfs", "viewfs", "sftp") and not parts.path.strip("/")):
        raise ConfigError(name, url, "needs a folder or a bucket")


def _check_paths(name: str, value: ConfigValue) -> None:
    if not value:
        raise ConfigError(name, None, "needs the path of a folder, a file, or a pattern such as /var/log/app/*.log")
    for path in value if isinstance(value, list) else []:
        if "\0" in path:
            raise ConfigError(name, None, "must not have NUL characters")
        if root_of_storage(path):
            _check_url(name, path)
        elif not path.startswith("/"):
            raise ConfigError(name, path, "must be absolute, because tasks run in other folders")
        if ".." in PurePosixPath(path).parts:
            raise ConfigError(name, path, "must not have '..'")
        if any("**" in part and part != "**" for part in PurePosixPath(path).parts):
            raise ConfigError(name, path, "may have ** only as the name of a folder, as in /data/**/*.csv")


def _check_part_bytes(name: str, value: ConfigValue) -> None:
    if type(value) is int and value != 0 and not CHUNK_BYTES <= value <= MOST:
        raise ConfigError(name, value, f"must be 0, or at least {CHUNK_BYTES}")


DEFINITION = ConfigDef(
    [
        list_key(
            name=PATHS,
            validator=Check(_check_paths, "absolute paths"),
            importance=HIGH,
            group=_FILES,
            doc="Files to read: absolute paths of files, of folders (all files directly in them), or patterns with *, ?, "
            "[...], and ** for folders at any depth. Paths are those of the tasks' machines, or URLs of one storage: "
            "hdfs://host:port/..., hdfs://nameservice/..., sftp://user@host/..., s3://bucket/..., gs://bucket/..., or "
            "abfs://container@account.dfs.core.windows.net/...",
        ),
        list_key(
            name=EXCLUDE,
            default=[".*", "*.tmp", "*.part", "*.swp"],
            importance=MEDIUM,
            group=_FILES,
            doc="Patterns of names of files that are not read.",
        ),
        text_key(name=TOPIC, validator=NonEmptyString(), importance=HIGH, group=_FILES, doc="Topic for the records."),
        text_key(
            name=MODE,
            validator=OneOf((LOGS, FILES)),
            importance=HIGH,
            group=_FILES,
            doc="Whether the files are logs, which programs append to and rotate, or files that are complete at some time. A "
            "log is "
            "followed through its rotations; the last line of a file needs no end.",
        ),
        ConfigKey(
            name=PATH_TIME,
            type=Type.STRING,
            default=None,
            validator=OrNull(Check(is_format, "a format with a day, such as dt=%Y-%m-%d/hour=%H")),
            importance=LOW,
            group=_FILES,
            doc="Format of the time in a file's path, in UTC, such as dt=%Y-%m-%d/hour=%H, by which files belong to intervals of "
            "runs with airflow.interval=exact. Default is when a file was modified.",
        ),
        ConfigKey(
            name=SCAN_INTERVAL_MS,
            type=Type.LONG,
            default=None,
            validator=OrNull(Range(10, MOST)),
            importance=LOW,
            group=_FILES,
            doc="Milliseconds after which new files are looked for, and files that do not announce changes are read. By default "
            "1,000, and 10,000 for URLs, where each look is at least one request for each folder.",
        ),
        *FORMAT_KEYS,
        choice_key(
            RECORD_KEY,
            NONE,
            (NONE, FILE),
            RECORDS,
            "The key of records: none, or the path of the file, with which all records of a log are in one partition, in order.",
        ),
        number_key(BATCH_SIZE, 2000, 1, RECORDS, "Most records of a batch."),
        number_key(
            RECORD_MAX_BYTES,
            1024 * 1024,
            CHUNK_BYTES,
            RECORDS,
            "Most bytes of a record. A larger one, such as one whose quote is never closed, is a bad record, and reading "
            f"continues on the next line. With {FORMAT}={JSON_ARRAY}, {XML}, or {WHOLE}, the file is not read any more.",
        ),
        number_key(
            ROTATED_CLOSE_MS,
            1000,
            0,
            _LOGS,
            "Milliseconds that a rotated log must not have changed before the next one is read, so that the last lines of a "
            "program "
            "that still has it open are not lost.",
        ),
        choice_key(
            COMPLETE_WHEN,
            STABLE,
            (STABLE, RENAMED, MARKER),
            _READ,
            f"With {MODE}={FILES}, when a file is complete: when it has not changed for stable.ms, as soon as it has its "
            "name, since "
            "it was written under another one, or when a file with its name and marker.suffix exists, before which it is not "
            "read.",
        ),
        number_key(STABLE_MS, 1000, 0, _READ, "Milliseconds without a change after which a file is complete."),
        text_key(
            name=MARKER_SUFFIX,
            default=".done",
            validator=NonEmptyString(),
            importance=LOW,
            group=_READ,
            doc="What is added to a file's name in its marker's.",
        ),
        choice_key(
            AFTER_READ,
            KEEP,
            (KEEP, MOVE, DELETE, TAG),
            _READ,
            f"What happens to a file when all of its records are in Kafka, and to its marker. {TAG} is for S3.",
        ),
        text_key(
            name=AFTER_READ_FOLDER,
            default="",
            importance=MEDIUM,
            group=_READ,
            doc="The folder to which files are moved, with the folders that they have below the first one without a pattern. "
            "A file "
            "that is there already is kept: the new one gets a suffix.",
        ),
        ConfigKey(
            name=PART_BYTES,
            type=Type.LONG,
            default=None,
            validator=OrNull(Check(_check_part_bytes, f"0, or at least {CHUNK_BYTES}")),
            importance=LOW,
            group=_READ,
            doc="Bytes of the parts of larger files, which tasks share; 0 for files that are read by one task each. A part has "
            "the lines, rows of CSV, row groups of Parquet, stripes of ORC, or blocks of Avro that begin in it. One task reads "
            "the parts of a file that it has in their order, but different tasks at the same time. By default 268435456 for "
            "Parquet, ORC, and Avro, and 0 for others. Changed, it lets large files be read again that are there.",
        ),
        *S3_READING,
        number_key(
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

_WITHOUT_FIELDS = (LINES, MULTILINE, WHOLE)
_ONLY_LOGS = (ROTATED_CLOSE_MS,)
_OF_S3 = tuple(key.name for key in S3_READING)
_ONLY_FILES = (
    COMPLETE_WHEN,
    STABLE_MS,
    MARKER_SUFFIX,
    AFTER_READ,
    AFTER_READ_FOLDER,
    FORGET_AFTER_MS,
    PART_BYTES,
    PATH_TIME,
    *_OF_S3,
)
_OF_STORAGE = {
    ("hdfs", "viewfs"): HDFS_LOGIN,
    ("sftp",): SFTP_LOGIN,
    ("s3",): (*S3_LOGIN, *S3_READING),
    ("gs",): GCS_LOGIN,
    ("abfs",): AZURE_LOGIN,
}


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
        after_read: KEEP, MOVE, DELETE, or TAG.
        folder: where files are moved.
        tag: the key and the value of the tag for files.
        forget_seconds: how long a file that is gone is remembered.
        scan_seconds: the time between two scans.
        part_bytes: the bytes of the parts of larger files; 0 for whole files.
        store: the remote storage with the files, None if they are local.
        whole_seconds: the time between two whole listings, None if each is one.
        queue_url: the queue with notifications, "" for none.
        path_time: finds the time in a path, in nanoseconds; None if files belong to intervals by when they were modified.
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
    tag: tuple[str, str]
    forget_seconds: float
    scan_seconds: float
    part_bytes: int
    store: Store | None = None
    whole_seconds: float | None = None
    queue_url: str = ""
    path_time: Callable[[str], int] | None = None

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

    def with_markers(self) -> FolderOptions:
        """Return the options with the markers among the files."""
        return replace(self, paths=(*self.paths, *(f"{path.rstrip('/')}{self.marker}" for path in self.paths)))

    def listing(self, storage: Storage) -> Listing:
        """Return the listing of the files in a storage."""
        if self.whole_seconds is not None and isinstance(storage, RemoteStorage):
            return KeyListing(self.paths, self.exclude, self.folder, storage, self.whole_seconds)
        return Listing(self.paths, self.exclude, self.folder, storage)


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
    found = [*_without_effect(values, config), *format_conflicts(values), *_storage_conflicts(values, config)]
    found += _field_conflicts(values) if config.get(FIELD) else []
    mode, format_, folder = values[MODE], str(values[FORMAT]), str(values[AFTER_READ_FOLDER]).rstrip("/")
    if format_ in NOT_OF_LOGS and mode == LOGS:
        found.append((FORMAT, f"a log is never complete: use {MODE}={FILES}"))
    if values[PART_BYTES] and format_ not in _IN_PARTS:
        found.append((PART_BYTES, f"must be 0 with {FORMAT}={format_}, whose files are read as a whole"))
    if values[PART_BYTES] and format_ not in _TABLES and values[COMPLETE_WHEN] == STABLE:
        found.append((PART_BYTES, f"needs files that are complete when they appear: {COMPLETE_WHEN}={RENAMED} or {MARKER}"))
    if values[AFTER_READ] == MOVE and not root_of_storage(folder) and not folder.startswith("/"):
        found.append((AFTER_READ_FOLDER, f"needs an absolute path with {AFTER_READ}={MOVE}"))
    if folder and any(_is_above(folder, path) for path in texts(values[PATHS])):
        found.append((AFTER_READ_FOLDER, "must be another folder than that of the files, and none above it"))
    if ".." in PurePosixPath(folder).parts:
        found.append((AFTER_READ_FOLDER, "must not have '..'"))
    return found


def _field_conflicts(values: Mapping[str, ConfigValue]) -> list[tuple[str, str]]:
    """Return the keys to change where a field of the records has their times, and why."""
    found = []
    if values[AFTER_READ] != KEEP:
        found.append((AFTER_READ, f"must be {KEEP} with {FIELD}: a file may have records of the next runs"))
    if values[FORMAT] in _WITHOUT_FIELDS:
        found.append((FORMAT, f"has no fields, as {FIELD} needs"))
    if values[PATH_TIME] is not None:
        found.append((PATH_TIME, f"does not go with {FIELD}: a record has one time"))
    return found


def _is_above(folder: str, path: str) -> bool:
    """Return whether a folder is that of a path's files, or above it."""
    fixed = re.split(r"[*?\[]", path.rstrip("/"))[0]
    base = path.rstrip("/") if fixed == path.rstrip("/") else fixed.rpartition("/")[0]
    return folder == path.rpartition("/")[0] or f"{base}/".startswith(f"{folder}/")


def _storage_conflicts(values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the keys to change because of the storage with the files, and why."""
    paths, found = texts(values[PATHS]), []
    scheme, storage = scheme_of(paths[0]), _storage_name(paths[0])
    if any(_storage_name(path) != storage for path in paths):
        found.append((PATHS, "must be on one storage"))
    if values[LISTING_ORDER] == ASCENDING and any(MAGIC.search(path.split("/")[2]) for path in paths if scheme == "s3"):
        found.append((LISTING_ORDER, f"can be {ASCENDING} only with buckets that {PATHS} name without a pattern"))
    if values[AFTER_READ] == TAG and scheme != "s3":
        found.append((AFTER_READ, f"can be {TAG} only with {PATHS} of s3://: other storages have no tags"))
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
    return f"{root}/{path.split('/')[2]}" if scheme_of(path) == "abfs" else root


def _without_effect(values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the keys that are set and have no effect, and which value of another key would give them one."""
    needed = {
        **dict.fromkeys(_ONLY_LOGS, (MODE, (LOGS,))),
        **dict.fromkeys(_ONLY_FILES, (MODE, (FILES,))),
        **{key.name: (FORMAT, (of,)) for key in DEFINITION for of, prefix in OF_FORMAT.items() if key.name.startswith(prefix)},
        ENCODING: (FORMAT, (LINES, MULTILINE, CSV, FIXED)),
        STABLE_MS: (COMPLETE_WHEN, (STABLE,)),
        MARKER_SUFFIX: (COMPLETE_WHEN, (MARKER,)),
        AFTER_READ_FOLDER: (AFTER_READ, (MOVE,)),
        AFTER_READ_TAG: (AFTER_READ, (TAG,)),
        LISTING_WHOLE_INTERVAL_MS: (LISTING_ORDER, (ASCENDING,)),
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
    follows, paths = values[MODE] == LOGS, texts(values[PATHS])
    store = store_of(paths[0], values, PATHS) if root_of_storage(paths[0]) else None
    return FolderOptions(
        paths=paths,
        exclude=texts(values[EXCLUDE]),
        topic=str(values[TOPIC]),
        follows=follows,
        format=format_of(values),
        limits=ReadLimits(
            record_bytes=number(values[RECORD_MAX_BYTES]),
            quiet_seconds=number(values[ROTATED_CLOSE_MS if follows else STABLE_MS]) / 1000,
            flush_seconds=number(values[MULTILINE_TIMEOUT_MS]) / 1000 if values[FORMAT] == MULTILINE else float("inf"),
        ),
        keys=values[RECORD_KEY] == FILE,
        batch_size=number(values[BATCH_SIZE]),
        complete_when=str(values[COMPLETE_WHEN]),
        marker=str(values[MARKER_SUFFIX]),
        after_read=str(values[AFTER_READ]),
        folder=str(values[AFTER_READ_FOLDER]).rstrip("/"),
        tag=tag_of(values[AFTER_READ_TAG]),
        forget_seconds=number(values[FORGET_AFTER_MS]) / 1000,
        path_time=None if values[PATH_TIME] is None else path_time(PATH_TIME, str(values[PATH_TIME])),
        scan_seconds=number(values[SCAN_INTERVAL_MS] or (1000 if store is None else 10_000)) / 1000,
        part_bytes=_part_bytes(values),
        store=store,
        whole_seconds=number(values[LISTING_WHOLE_INTERVAL_MS]) / 1000 if values[LISTING_ORDER] == ASCENDING else None,
        queue_url=str(values[NOTIFICATIONS_QUEUE_URL]),
    )


def _part_bytes(values: Mapping[str, ConfigValue]) -> int:
    given = values[PART_BYTES]
    if given is None:
        return _TABLE_PART_BYTES if values[MODE] == FILES and values[FORMAT] in _TABLES else 0
    return number(given)
