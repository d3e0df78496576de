"""The folder source: copies files, dumps, and logs to a topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, SourceConnector, SourceWatch
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.config.intervals import FIELD
from sluiceway.connectors.files.store_check import refusals
from sluiceway.connectors.folder import config as keys
from sluiceway.connectors.folder.finished import BUCKET_FIELD
from sluiceway.connectors.folder.identity import Identity
from sluiceway.connectors.folder.notifications import queue_refusals
from sluiceway.connectors.folder.parts import FILE_FIELD
from sluiceway.connectors.folder.s3_config import NOTIFICATIONS_QUEUE_URL
from sluiceway.connectors.folder.source_watch import FileChanges
from sluiceway.connectors.folder.task import TASK, TASKS, FolderSourceTask
from sluiceway.errors import ConnectError


class FolderSourceConnector(SourceConnector):
    """Copies the lines, rows, or contents of the files of folders and patterns to a topic: logs through their rotations, and
    files that are complete at some time, which are then kept, moved, deleted, or tagged. A restart continues after the last
    record, also if the file has another name by then, or is a compressed copy.
    """

    task_class = FolderSourceTask
    interval_by_timestamp = False

    @classmethod
    def config_def(cls) -> ConfigDef:
        return keys.DEFINITION

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        return keys.check(config)

    @classmethod
    def try_config(cls, config: Mapping[str, str], found: Mapping[str, ValidatedValue]) -> None:
        """Add whether a remote storage lets us in. No answer within seconds is not an error."""
        options = keys.options(config)
        if options.store is not None:
            for key, message in refusals(options.store, options.store.root):
                found[key].errors.append(message)
            if options.queue_url:
                found[NOTIFICATIONS_QUEUE_URL].errors += queue_refusals(options.queue_url, options.store.options)

    @classmethod
    def interval_refusal(cls, config: Mapping[str, str]) -> str:
        if config.get(FIELD):
            return f"records belong to intervals by their field {config[FIELD]}"
        if config.get(keys.MODE) == keys.FILES:
            return ""
        return f"logs are followed, and have no intervals: set {keys.MODE}={keys.FILES} for files that are read once"

    @classmethod
    def watch_refusal(cls, config: Mapping[str, str]) -> str:
        return ""

    @classmethod
    def watch(cls, config: Mapping[str, str]) -> SourceWatch:
        return FileChanges(keys.options(config))

    @classmethod
    def start_effects(cls, config: Mapping[str, str]) -> str:
        if config.get(NOTIFICATIONS_QUEUE_URL):
            return "it deletes the messages of its queue"
        action = config.get(keys.AFTER_READ, keys.KEEP)
        if action == keys.TAG:
            return "it tags files that it has read"
        return "" if action == keys.KEEP else "it moves or deletes files that it has read"

    def start(self, config: Mapping[str, str]) -> None:
        keys.options(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{**self._config, TASK: str(task), TASKS: str(max_tasks)} for task in range(max_tasks)]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        for partition, offset in offsets:
            if BUCKET_FIELD in partition and offset is None:
                continue
            if not isinstance(partition.get(FILE_FIELD), str):
                raise ConnectError(f"The source partition {dict(partition)} must have the path of a file as '{FILE_FIELD}'.")
            if offset is not None:
                Identity.from_offset(partition, offset)
        return True
