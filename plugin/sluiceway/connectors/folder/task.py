"""Reads the files of a task in turns and makes records of their blocks. Runs on executors."""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import logging
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence

from sluiceway.api import (
    Offset,
    Partition,
    SourceColumns,
    SourceLag,
    SourceRecord,
    SourceTask,
    SourceTaskContext,
)
from sluiceway.connectors.folder import config as keys
from sluiceway.connectors.folder.batches import DONE_FIELD, Batches, Taken, offset_of
from sluiceway.connectors.folder.content import BrokenFileError, is_compressed
from sluiceway.connectors.folder.finished import BUCKET_FIELD, BUCKETS, FinishedFiles, bucket_of
from sluiceway.connectors.folder.identity import Cursor, FileStatus, Identity
from sluiceway.connectors.folder.listing import Found, Listing
from sluiceway.connectors.folder.local_files import LocalStorage
from sluiceway.connectors.folder.parts import file_of, part_of, parts_of, previous, source_partition, with_parts
from sluiceway.connectors.folder.readers import BadFileError, Block, FileReader, LogReader, PartReader
from sluiceway.connectors.folder.rotation import is_likely_rotated, possible_logs, root_of
from sluiceway.connectors.folder.storage import Storage
from sluiceway.connectors.folder.tables import TableFormat, TableReader
from sluiceway.connectors.folder.watch import FolderWatch
from sluiceway.connectors.shares import is_of_task
from sluiceway.errors import DataError

log = logging.getLogger(__name__)

TASK, TASKS = "sluiceway.folder.task", "sluiceway.folder.tasks"

_WAIT_SECONDS = 0.5
_RETRY_SECONDS = 0.05
_DONE_SECONDS = 1.0
_DONE_FILES = 1000
_OPEN_LOGS = 500
_MOST_DROPPED = 10_000
_MINUTE = 60.0
_ABSENT_SECONDS = 600.0
_TRUSTED_SECONDS = 60.0  # an age of a file that no wrong clock explains


class FolderSourceTask(SourceTask):
    """Reads its share of the files.

    The source partition is ``{"file": path}``, the offset a position with what identifies the file. Each file has its turn for
    a block of some hundred kilobytes. With ``mode=files``, the offset of a file that was read to its end has ``"done": true``;
    only when that is stored, the file is moved or deleted.
    """

    def initialize(self, context: SourceTaskContext) -> None:
        super().initialize(context)
        self._readers: dict[str, LogReader | FileReader] = {}
        self._turns: deque[LogReader | FileReader] = deque()
        self._idle: dict[str, LogReader] = {}  # logs that have nothing to read before they change
        self._pending: deque[Block] = deque()  # what was read, and not returned yet
        self._open: set[str] = set()  # logs that stay open between two turns
        self._others: set[str] = set()  # files of other tasks
        self._unstored: dict[str, Cursor] = {}  # files that are finished, which no record's offset says
        self._unhandled: set[str] = set()  # files to move or delete
        self._try_again: dict[str, float] = {}  # files that could not be moved or deleted, and when the next attempt is due
        self._handled: list[str] = []  # files that were moved or deleted, whose offsets are not needed any more
        self._ended: set[str] = set()  # the same, also if a stored offset says otherwise, because it is about to be removed
        self._absent: dict[str, float] = {}  # logs that are not there, and since when
        self._gone: set[str] = set()  # files that were there, and are not any more
        self._watched: dict[str, tuple[FileStatus, float]] = {}  # files that may be complete soon, and since when they look so
        self._dropped: dict[str, Identity] = {}  # logs, and files that were not finished, that are gone
        self._empty: set[str] = set()  # logs that were empty, of which an offset says so
        self._generations: set[str] = set()  # files that are no logs of their own
        self._scanned: int | None = None  # when the last scan was, in nanoseconds since the epoch
        self._unreadable: dict[str, FileStatus] = {}  # damaged files, as they were then
        self._present: Collection[str] = ()
        self._divided: dict[str, bool] = {}  # large files, and whether tasks share them
        self._failed: dict[str, str] = {}  # files and folders that cannot be read, and why
        self._is_away = False  # whether the storage has not answered in this poll
        self._counts = {"generations-lost": 0, "files-finished": 0, "files-unhandled": 0}
        self._scan_due = self._done_due = 0.0
        self._watch = FolderWatch(context.wake)
        self._storage: Storage = LocalStorage()

    def start(self, config: Mapping[str, str]) -> None:
        self._options = keys.options(config)
        self._task, self._tasks = int(config.get(TASK, "0")), int(config.get(TASKS, "1"))
        self._storage = self._options.storage()
        self._listing = Listing(self._options.paths, self._options.exclude, self._options.folder, self._storage)
        self._batches = Batches(self._options, self.context)
        self._finished = FinishedFiles(self._options.forget_seconds)
        if not self._options.follows:
            buckets = [bucket for bucket in range(BUCKETS) if self._is_mine(str(bucket))]
            stored = self.context.offset_storage_reader.offsets([{BUCKET_FIELD: bucket} for bucket in buckets])
            for bucket, offset in zip(buckets, stored, strict=True):
                if offset is not None:
                    self._finished.load(bucket, offset)
        self._scan()

    # --- Files

    def _scan(self) -> None:
        """Look for new files, and for logs that have changed."""
        now = time.monotonic()
        if now < self._scan_due:
            return
        began = time.time_ns()
        try:
            folders = self._listing.folders()
            found = {each.path: each.status for each in self._listing.files(folders, self._refused)}
        except OSError as error:  # the storage does not answer, which says nothing about its files
            self._scan_due = time.monotonic() + self._options.scan_seconds
            self._say_once(self._options.paths[0], error)
            self.context.waiting(error.strerror or str(error))
            return
        self._failed.pop(self._options.paths[0], None)
        if self._storage.announces:
            self._watch.watch(folders)
        self._others.intersection_update(found)
        if self._options.follows:
            for path, reader in list(self._idle.items()):
                if found.get(path) != reader.looked_at:
                    self._wake(path)
            self._generations.intersection_update(found)
            self._forget_logs(found)
            self._add_logs(found)
            self._scanned = began
        else:
            found = self._with_parts(found)
            if not self._present:
                self._read_again(found)
                self._handle_again(found)
            self._gone.update(path for path in self._present if path not in found)
            if len(self._gone) > _MOST_DROPPED:
                self._gone.clear()
            self._present = found.keys()
            self._drop(found)
            self._add_files([Found(path, status) for path, status in found.items() if self._is_new(path, status)])
        # A look at 20,000 files takes a tenth of a second: no more than a twentieth of the time is spent on that.
        self._scan_due = time.monotonic() + max(self._options.scan_seconds, 20 * (time.monotonic() - now))
        if self._readers or found:
            self.context.waiting()
        else:
            self.context.waiting(f"there is no file of {', '.join(self._options.paths)}")

    def _with_parts(self, found: Mapping[str, FileStatus]) -> dict[str, FileStatus]:
        """Return the files, and the parts of large ones. A file that was read as a whole before remains one."""
        size = self._options.part_bytes
        large = [path for path, status in found.items() if 0 < size < status.size and not is_compressed(path)]
        new = [path for path in large if path not in self._divided]
        buckets = sorted({bucket_of(path) for path in new})
        whole = FinishedFiles(0)
        if new:
            reader = self.context.offset_storage_reader
            for bucket, offset in zip(buckets, reader.offsets([{BUCKET_FIELD: each} for each in buckets]), strict=True):
                if offset is not None:
                    whole.load(bucket, offset)
        known = {path for path, identity, _ in self._stored(new) if identity is not None or whole.get(path) is not None}
        self._divided = {path: self._divided.get(path, path not in known) for path in large}
        return with_parts(found, self._divided, size)

    def _read_again(self, found: Collection[str]) -> None:
        """Forget the finished files for which a user has set an offset."""
        if len(self._finished):
            for path, _, done in self._stored([path for path in found if self._finished.get(path) is not None]):
                if done is False:
                    self._finished.discard(path)

    def _handle_again(self, found: Mapping[str, FileStatus]) -> None:
        """Find the files that a crash has left after it had moved or deleted their markers."""
        if self._options.complete_when != keys.MARKER or self._options.after_read == keys.KEEP:
            return
        mine = [path for path in found if self._is_mine(str(bucket_of(path)))]
        for path, identity, done in self._stored(mine):
            if done and identity is not None and identity.is_of(found[path]):
                self._finished.add(path, identity)
                self._unhandled.add(path)

    def _is_mine(self, name: str) -> bool:
        return is_of_task(name, self._task, self._tasks)

    def _is_assigned(self, path: str, name: str) -> bool:
        """Return whether a file belongs to this task by its name in the assignment. Others are remembered."""
        if not self._is_mine(name):
            self._others.add(path)
            return False
        return True

    def _is_new(self, path: str, status: FileStatus) -> bool:
        if path in self._readers or path in self._others or path in self._unreadable or self._finished.has(path, status):
            return False
        if not self._is_assigned(path, str(bucket_of(path))):
            return False
        if self._options.complete_when != keys.MARKER:
            return True
        file = file_of(path)
        return not file.endswith(self._options.marker) and self._is_there(file + self._options.marker)

    def _is_there(self, path: str) -> bool:
        try:
            return self._storage.status(path) is not None
        except OSError as error:
            self._say_once(path, error)
            return False

    def _add_logs(self, found: Mapping[str, FileStatus]) -> None:
        """Add the logs among the files that are new. All generations of a log belong to one task, by the log's name."""
        new: dict[str, list[str]] = {}
        for path, status in found.items():
            is_known = path in self._readers or path in self._others or path in self._generations
            if not is_known and self._unreadable.get(path) != status and self._is_assigned(path, root_of(path)):
                new[path] = possible_logs(path)
        stored = {path: identity for path, identity, _ in self._stored(sorted({*new, *itertools.chain(*new.values())}))}
        rotated = set()
        for path, logs in new.items():
            known = [log for log in logs if log in found or log in self._readers or stored.get(log) is not None]
            if not known and logs and is_likely_rotated(path):
                known = logs[:1]
            if known and stored.get(path) is None:
                self._generations.add(path)
                rotated.add(known[0])
        for log in sorted(({*new} - self._generations | rotated) - self._readers.keys()):
            # Of a log that appears while the task runs, nothing that was written since is passed over.
            since = 0 if log in rotated else self._scanned
            self._add(log, self._log_reader(log, self._dropped.pop(log, None) or stored.get(log), since))

    def _forget_logs(self, found: Collection[str]) -> None:
        """Forget logs that are gone for some time, but for where they were read to."""
        now = time.monotonic()
        self._absent = {path: self._absent.get(path, now) for path in self._readers if path not in found}
        for path in [path for path, since in self._absent.items() if now - since >= _ABSENT_SECONDS]:
            reader = self._readers[path]
            if isinstance(reader, LogReader) and not reader.is_open:
                self._wake(path)
                self._remove(reader)
                self._remember(path, reader.identity)

    def _log_reader(self, path: str, identity: Identity | None, since: int | None) -> LogReader:
        options, lost = self._options, functools.partial(self._generation_lost, path)
        return LogReader(
            path, options.format, options.limits, identity, since=since, is_other=self._readers.__contains__, lost=lost
        )

    def _add_files(self, files: Sequence[Found]) -> None:
        stored = self._stored([each.path for each in files])
        for (path, identity, done), (_, status) in zip(stored, files, strict=True):
            if path in self._ended:
                self._ended.discard(path)
                identity, done = None, None
            if done and identity is not None and identity.is_of(status):
                self._finished.add(path, identity)
                if self._options.after_read != keys.KEEP:
                    self._unhandled.add(path)  # the task ended before
                continue
            finished = self._finished.get(path)
            known = finished or self._dropped.pop(path, None) or identity
            delivered_again = path in self._gone or (self._options.after_read != keys.KEEP and done is True)
            if (finished is not None or done) and delivered_again and known is not None and status.size <= known.size:
                known = None
            self._gone.discard(path)
            self._finished.read_again(path)
            is_table, is_part = isinstance(self._options.format, TableFormat), part_of(path) is not None
            reader_class = TableReader if is_table else PartReader if is_part else FileReader
            reader = reader_class(
                path,
                self._options.format,
                self._options.limits,
                known,
                self._is_complete,
                self._storage,
                was_done=finished is not None or done is True,
            )
            self._add(path, reader)

    def _add(self, path: str, reader: LogReader | FileReader) -> None:
        self._readers[path] = reader
        self._turns.append(reader)

    def _wake(self, path: str) -> None:
        reader = self._idle.pop(path, None)
        if reader is not None:
            self._turns.append(reader)

    def _stored(self, paths: Sequence[str]) -> Iterator[tuple[str, Identity | None, bool | None]]:
        """Yield each path with its stored position, and whether the file is done; None if nothing is stored."""
        partitions = [source_partition(path) for path in paths]
        offsets = self.context.offset_storage_reader.offsets(partitions) if partitions else []
        for path, partition, offset in zip(paths, partitions, offsets, strict=True):
            if offset is None:
                yield path, None, None
            else:
                yield path, Identity.from_offset(partition, offset), offset.get(DONE_FIELD) is True

    def _drop(self, found: Mapping[str, FileStatus]) -> None:
        """Forget files that are not there any more."""
        for path, reader in [each for each in self._readers.items() if each[0] not in found and not each[1].is_open]:
            self._remove(reader)
            self._remember(path, reader.cursor.identity())
        for path in [path for path, status in self._unreadable.items() if found.get(path) != status]:
            del self._unreadable[path]

    def _remember(self, path: str, identity: Identity | None) -> None:
        """Remember where a file that is gone was read to, so that its offset need not be stored yet when it is there again."""
        if len(self._dropped) >= _MOST_DROPPED:
            self._dropped.clear()
        if identity is not None:
            self._dropped[path] = identity

    def _is_complete(self, path: str, status: FileStatus) -> bool:
        if self._options.complete_when != keys.STABLE:
            return True
        age = time.time() - status.modified / 1e9
        if self._storage.announces and age >= max(self._options.limits.quiet_seconds, _TRUSTED_SECONDS):
            return True
        # The clock of a file server may be another one: what counts is how long this task has seen no change.
        known, since = self._watched.get(path, (None, 0.0))
        if known != status:
            since = time.monotonic()
            self._watched[path] = status, since
        return time.monotonic() - since >= self._options.limits.quiet_seconds

    def _generation_lost(self, path: str, reason: str) -> None:
        self._counts["generations-lost"] += 1
        log.warning("%s: %s", path, reason)

    # --- Records

    def poll(self) -> Sequence[SourceRecord] | None:
        found = self._next(columnar=False)
        assert not isinstance(found, SourceColumns)  # noqa: S101 (for mypy)
        return found

    def poll_columns(self) -> SourceColumns | Sequence[SourceRecord] | None:
        return self._next(columnar=True)

    def _next(self, *, columnar: bool) -> SourceColumns | Sequence[SourceRecord] | None:
        self._scan()
        waiting = len(self._unstored) + len(self._handled)
        if (waiting and time.monotonic() >= self._done_due) or waiting >= _DONE_FILES:
            self._done_due = time.monotonic() + _DONE_SECONDS
            return None  # so that the offsets of files that are done are stored, although others have records
        records = self._take(columnar=columnar)
        if not records and not self._unstored and not self._handled:
            # While a rotated log is waited for, or a file that may be complete, only time tells.
            self.context.wait(_RETRY_SECONDS if self._turns else max(0.0, min(_WAIT_SECONDS, self._scan_due - time.monotonic())))
        return records or None

    def _take(self, *, columnar: bool) -> SourceColumns | list[SourceRecord]:
        """Give each file a turn until there are enough records."""
        self._wake_changed()
        taken = Taken()
        for block in self._blocks(taken):
            part = self._batches.part(block, self._options.batch_size - taken.count) if columnar else None
            if not taken.takes(part):  # what was taken before is sent before
                self._pending.appendleft(block)
                break
            if part is not None and not taken.records and taken.fits(part):
                taken.add(part)
                if (rest := block.rest(part.columns.length)).data:
                    self._pending.append(rest)
            else:
                taken.records += [record for each in (*taken.end_parts(), block) for record in self._rows(each)]
            if taken.count >= self._options.batch_size:
                break
        if not taken.are_columns:
            return taken.records + [record for each in taken.end_parts() for record in self._rows(each)]
        for part in taken.parts:
            self._moves_on(part.block.path)
            if part.block.is_last:
                self._done(part.block.path)
        return self._batches.columns(taken.parts)

    def _blocks(self, taken: Taken) -> Iterator[Block]:
        """Yield what is pending, and then a block of each file; of all again as long as nothing is taken but bad records."""
        turns, ends = len(self._turns), time.monotonic() + _WAIT_SECONDS
        self._is_away = False
        while turns > 0 or self._pending:
            if self._pending:
                yield self._pending.popleft()
                if not taken.count and time.monotonic() < ends:
                    turns = len(self._turns)
                continue
            turns -= 1
            block = self._turn()
            if self._is_away:  # the other files would wait for its answer, too
                return
            if block is not None:
                self._pending.append(block)

    def _wake_changed(self) -> None:
        for changed in self._watch.changed():
            for path in [changed, *possible_logs(changed)] if changed else list(self._idle):
                self._wake(path)

    def _turn(self) -> Block | None:
        """Read the next file's next block. A file that cannot be read is tried again."""
        reader = self._turns[0]
        self._turns.rotate(-1)
        if previous(reader.path) in self._readers:  # a file's parts of one task are read in their order
            return None
        try:
            block = reader.read()
        except (BrokenFileError, BadFileError) as error:
            self._remove(reader)
            with contextlib.suppress(OSError):
                if (status := self._storage.status(file_of(reader.path))) is not None:
                    self._unreadable[reader.path] = status
            record = SourceRecord(source_partition(reader.path), None, self._options.topic, None)
            self.context.report(record, DataError(str(error)))
            return None
        except OSError as error:
            self._say_once(reader.path, error)
            self._is_away = not self._storage.announces and error.errno not in (errno.ENOENT, errno.EACCES)
            return None
        self._failed.pop(reader.path, None)
        if isinstance(reader, FileReader):
            if reader.is_done:
                self._finish(reader, block)
        else:
            if reader.is_idle:
                self._turns.pop()  # it is the last one now
                self._idle[reader.path] = reader
                if reader.is_untouched and reader.path not in self._empty:
                    self._empty.add(reader.path)
                    self._unstored[reader.path] = reader.cursor  # so that a restart knows which file it was
            self._keep_open(reader)
        return block

    def _keep_open(self, reader: LogReader) -> None:
        """Keep a log open until its next turn, unless too many are: one that is deleted meanwhile can then be read to its end."""
        if reader.is_open and len(self._open) >= _OPEN_LOGS and reader.path not in self._open:
            reader.rest()
        if reader.is_open:
            self._open.add(reader.path)
        else:
            self._open.discard(reader.path)

    def _finish(self, reader: FileReader, block: Block | None) -> None:
        """Note that all of a file was read, with its last block."""
        self._remove(reader)
        self._finished.add(reader.path, reader.cursor.identity())
        if block is None:
            self._unstored[reader.path] = reader.cursor
            self._done(reader.path)

    def _refused(self, folder: str, error: OSError) -> None:
        """Pass over a folder that may not be read. Raises OSError if it could not be asked."""
        if not self._storage.announces and error.errno != errno.EACCES:
            raise error
        self._say_once(folder, error)

    def _say_once(self, path: str, error: OSError) -> None:
        reason = error.strerror or str(error)
        if self._failed.get(path) != reason:
            self._failed[path] = reason
            log.warning("%s cannot be read, and is tried again: %s", file_of(path), reason)

    def _remove(self, reader: LogReader | FileReader) -> None:
        """Read a file no more, unless it changes."""
        reader.close()
        self._turns.remove(reader)
        del self._readers[reader.path]
        self._watched.pop(reader.path, None)

    def _done(self, path: str) -> None:
        """Note that all records of a file have been returned."""
        self._counts["files-finished"] += 1
        if self._options.after_read != keys.KEEP:
            self._unhandled.add(path)

    def _moves_on(self, path: str) -> None:
        """Drop the offsets to store that the next records of a file make obsolete."""
        self._unstored.pop(path, None)
        if path in self._handled:
            self._handled.remove(path)

    def _rows(self, block: Block) -> list[SourceRecord]:
        self._moves_on(block.path)
        records = self._batches.records(block)
        if block.is_last:
            if not records:
                self._unstored[block.path] = block.after
            self._done(block.path)
        return records

    # --- Offsets, and files that are done

    def idle_offsets(self) -> Sequence[tuple[Partition, Offset | None]]:
        stored: list[tuple[Partition, Offset | None]]
        done = not self._options.follows
        stored = [(source_partition(path), offset_of(cursor, done=done)) for path, cursor in self._unstored.items()]
        stored += [(source_partition(path), None) for path in self._handled]
        self._unstored.clear()
        self._handled.clear()
        if stored or self._options.follows or self._options.after_read != keys.KEEP:
            return stored  # an offset of a file to be moved or deleted is removed when that is done
        return self._finished.folded(self._present)

    @property
    def commit_is_awaited(self) -> bool:
        """Whether files are to be moved or deleted, as after a crash between Kafka's acknowledgement and that."""
        return bool(self._due())

    def _due(self) -> list[str]:
        """Return the files of which it is stored that they are done, and those that could not be moved or deleted before."""
        now = time.monotonic()
        again = [path for path, at in self._try_again.items() if at <= now]
        return [*again, *(path for path in self._unhandled if path not in self._unstored)]

    def commit(self) -> None:
        """Move or delete the files of which it is stored that they are done."""
        now = time.monotonic()
        for path in self._due():
            self._unhandled.discard(path)
            self._try_again.pop(path, None)
            try:
                status = self._storage.status(file_of(path))
                if status is None:
                    self._forget_part(path)
                elif self._finished.has(path, status):  # otherwise there is more to read
                    if self._is_whole(path, status):
                        self._handle(path)
                        self._failed.pop(path, None)
                    else:
                        self._try_again[path] = now + _DONE_SECONDS
            except OSError as error:
                past, reason = _PAST[self._options.after_read], error.strerror or str(error)
                if self._failed.get(path) != reason:
                    self._failed[path] = reason
                    self._counts["files-unhandled"] += 1
                    log.warning("%s was read, but not %s, which is tried again each minute: %s", file_of(path), past, reason)
                self._try_again[path] = now + _MINUTE

    def _forget_part(self, path: str) -> None:
        """Remove the offset of a part whose file another task has moved or deleted."""
        if part_of(path) is not None:
            self._end(path)

    def _is_whole(self, path: str, status: FileStatus) -> bool:
        """Return whether a path is a file's, or its first part's and all the others are done, too."""
        part = part_of(path)
        if part is None:
            return True
        others = parts_of(file_of(path), status.size, part.size)[1:]
        stored = self._stored(others) if part.number == 0 else ()
        return part.number == 0 and all(done and identity is not None and identity.is_of(status) for _, identity, done in stored)

    def _handle(self, path: str) -> None:
        options, file = self._options, file_of(path)
        # The marker first: one that is left would say that the next file with this name is complete.
        for each in [file + options.marker, file] if options.complete_when == keys.MARKER else [file]:
            if options.after_read == keys.DELETE:
                self._storage.delete(each)
            else:
                self._storage.move(each, options.folder, self._listing.base_of(each))
        self._end(path)

    def _end(self, path: str) -> None:
        """Forget a file that was moved or deleted. What has its name later is another file."""
        self._finished.discard(path)
        self._handled.append(path)
        if len(self._ended) >= _MOST_DROPPED:
            self._ended.clear()
        self._ended.add(path)

    def metrics(self) -> Mapping[str, float]:
        return dict(self._counts)

    def source_lag(self) -> SourceLag:
        return SourceLag(bytes=float(sum(each.lag_bytes for each in list(self._readers.values()))))

    def stop(self) -> None:
        self._watch.close()
        for reader in self._readers.values():
            reader.close()
        self._storage.close()


_PAST = {keys.DELETE: "deleted", keys.MOVE: "moved"}
