"""Reads the files of a task in turns and makes records of their blocks. Runs on executors."""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import logging
import math
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
from sluiceway.config.intervals import FIELD, interval_of
from sluiceway.config.schedules import ON_CHANGE, SCHEDULE
from sluiceway.connectors.folder import config as keys
from sluiceway.connectors.folder.batches import Batches, Taken, offset_of
from sluiceway.connectors.folder.content import BrokenFileError, is_compressed
from sluiceway.connectors.folder.finished import BUCKET_FIELD, BUCKETS, FinishedFiles, bucket_of, key_of
from sluiceway.connectors.folder.handling import Handling
from sluiceway.connectors.folder.identity import Cursor, FileStatus, Identity
from sluiceway.connectors.folder.listing import Found, Scan
from sluiceway.connectors.folder.local_files import LocalStorage
from sluiceway.connectors.folder.notifications import Hints, Share, queue_client
from sluiceway.connectors.folder.parts import file_of, part_of, previous, source_partition, with_parts
from sluiceway.connectors.folder.readers import BadFileError, Block, FileReader, LogReader, PartReader
from sluiceway.connectors.folder.rotation import is_likely_rotated, possible_logs, root_of
from sluiceway.connectors.folder.storage import Storage
from sluiceway.connectors.folder.stored import Stored, stored_anywhere, stored_of
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
_ASKED_AT_ONCE = 2000
_OPEN_LOGS = 500
_MOST_DROPPED = 10_000
_MINUTE = 60.0
_ABSENT_SECONDS = 600.0
_LEEWAY_SECONDS = 2.0  # that a storage may take to tell that nothing has changed
_TRUSTED_SECONDS = 60.0  # an age of a file that no wrong clock explains


class FolderSourceTask(SourceTask):
    """Reads its share of the files.

    The source partition is ``{"file": path}``, the offset a position with what identifies the file. Each file has its turn for
    a block of some hundred kilobytes. With ``mode=files``, the offset of a file that was read to its end has ``"done": true``;
    only when that is stored, the file is moved, deleted, or tagged. That of a file with its tag has ``"tagged": true``.
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
        self._absent: dict[str, float] = {}  # logs that are not there, and since when
        self._gone: set[int] = set()  # the keys of files that were there, and are not any more
        self._watched: dict[str, tuple[FileStatus, float]] = {}  # files that may be complete soon, and since when they look so
        self._dropped: dict[str, Identity] = {}  # logs, and files that were not finished, that are gone
        self._empty: set[str] = set()  # logs that were empty, of which an offset says so
        self._generations: set[str] = set()  # files that are no logs of their own
        self._scanned: int | None = None  # when the last scan was, in nanoseconds since the epoch
        self._unreadable: dict[str, FileStatus] = {}  # damaged files, as they were then
        self._has_scanned = False
        self._present: set[int] = set()  # the keys of files that were there in the last scan
        self._passed_over: set[int] = set()  # those that this scan has passed over
        self._to_ask: dict[str, FileStatus] = {}  # files whose stored offsets the first scan asks for
        self._asked: dict[str, FileStatus] = {}  # those that a user has set
        self._unmarked: dict[str, FileStatus] = {}  # files of this task whose markers are not there
        self._divided: dict[str, bool] = {}  # large files, and whether tasks share them
        self._failed: dict[str, str] = {}  # files and folders that cannot be read, and why
        self._maybe_held: set[str] = set()  # files that this run has read, the last records of which it may not send
        self._scanned_at = math.inf  # when the first scan was done
        self._is_away = False  # whether the storage has not answered in this poll
        self._counts = {"generations-lost": 0, "files-finished": 0}
        self._scan_due = self._done_due = 0.0
        self._watch = FolderWatch(context.wake)
        self._hints: Hints | None = None
        self._storage: Storage = LocalStorage()

    def start(self, config: Mapping[str, str]) -> None:
        self._options = keys.options(config)
        run = interval_of(config)
        self._holds_back = run is not None and FIELD in config  # the runtime does, which knows the records' times
        self._interval = None if self._holds_back else run
        self._is_watched = config.get(SCHEDULE) == ON_CHANGE  # another run may have read and moved all files
        self._task, self._tasks = int(config.get(TASK, "0")), int(config.get(TASKS, "1"))
        self._storage = self._options.storage()
        self._listing = self._options.listing(self._storage)
        self._batches = Batches(self._options, self.context)
        self._finished = FinishedFiles(self._options.forget_seconds)
        self._handling = Handling(self._options, self._storage, self._listing, self._finished, self.context.offset_storage_reader)
        self._buckets: set[int] = set()  # of the finished files of this task
        if not self._options.follows:
            self._buckets = {bucket for bucket in range(BUCKETS) if self._is_mine(str(bucket))}
            self._load_finished()
        self._scan()
        if self._options.queue_url and self._options.store is not None and self._interval is None and not self._holds_back:
            url, store = self._options.queue_url, self._options.store
            self._hints = Hints(url, lambda: queue_client(url, store.options), self._share, self.context.wake)

    def _load_finished(self) -> None:
        stored = self.context.offset_storage_reader.offsets([{BUCKET_FIELD: bucket} for bucket in self._buckets])
        for bucket, offset in zip(self._buckets, stored, strict=True):
            if offset is not None:
                self._finished.load(bucket, offset)

    # --- Files

    def _scan(self) -> None:
        """Look for new files, and for logs that have changed."""
        now = time.monotonic()
        if now < self._scan_due:
            return
        began = time.time_ns()
        self._passed_over = set()
        try:
            scan = self._listing.scan(self._refused, self._passes_over)
            if self._interval is not None:
                scan = scan.of_interval(self._interval, self._options.path_time)
        except OSError as error:  # the storage does not answer, which says nothing about its files
            self._scan_due = time.monotonic() + self._options.scan_seconds
            self._say_once(self._options.paths[0], error)
            self.context.waiting(error.strerror or str(error))
            return
        self._failed.pop(self._options.paths[0], None)
        found = scan.found
        if self._storage.announces:
            self._watch.watch(scan.folders)
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
            self._look_at(scan)
        # A look at 20,000 files takes a tenth of a second: no more than a twentieth of the time is spent on that.
        is_rare = scan.is_whole and self._options.whole_seconds is not None  # the next one is for new files only
        rest = 0.0 if is_rare else 20 * (time.monotonic() - now)
        self._scan_due = time.monotonic() + max(self._options.scan_seconds, rest)
        if self._readers or found or self._present or self._is_watched:
            self.context.waiting()
        else:
            self.context.waiting(f"there is no file of {', '.join(self._options.paths)}")

    def _passes_over(self, path: str, status: FileStatus) -> bool:
        """Return whether nothing needs to be done about a file, which is finished or another task's, and note that it is there.

        In the first scan, it may be that a user has set an offset since, or that a crash has left the file without its marker.
        """
        if self._options.follows or self._may_have_parts(path, status) or path in self._readers:
            return False
        if not self._has_scanned and (self._may_lack_marker or self._interval is not None):
            return False
        key = key_of(path)
        if key % BUCKETS in self._buckets:
            if not self._finished.has(key, status):
                return False
            if not self._has_scanned:
                self._ask(path, status)
        self._passed_over.add(key)
        return True

    @property
    def _may_lack_marker(self) -> bool:
        return self._options.complete_when == keys.MARKER and self._options.after_read != keys.KEEP

    def _may_have_parts(self, path: str, status: FileStatus) -> bool:
        return 0 < self._options.part_bytes < status.size and not is_compressed(path)

    def _with_parts(self, found: Mapping[str, FileStatus], *, is_whole: bool) -> dict[str, FileStatus]:
        """Return the files, and the parts of large ones. A file that was read as a whole before remains one."""
        large = [path for path, status in found.items() if self._may_have_parts(path, status)]
        new = [path for path in large if path not in self._divided]
        stored = stored_anywhere(self.context.offset_storage_reader, new) if new else ()
        self._divided.update((each.path, each.identity is None) for each in stored)
        if is_whole:
            self._divided = {path: self._divided[path] for path in large}
        return with_parts(found, self._divided, self._options.part_bytes)

    def _look_at(self, scan: Scan) -> None:
        """Look for new files, and for those that are not there any more."""
        found = self._with_parts(scan.found, is_whole=scan.is_whole)
        present = self._passed_over
        present.update(map(key_of, found))
        if not self._has_scanned:
            self._has_scanned, self._scanned_at = True, time.monotonic()
            self._read_again(found)
            found |= self._asked | self._read_again(self._to_ask)
            self._asked, self._to_ask = {}, {}
            if self._may_lack_marker:
                self._handle_again(found)
        if scan.is_whole:
            self._gone |= self._present - present
            if len(self._gone) > _MOST_DROPPED:
                self._gone.clear()
            self._present = present
            self._drop([path for path in self._readers if path not in found])
            self._unreadable = {path: status for path, status in self._unreadable.items() if found.get(path) == status}
            new = self._unread(found)
            if late := [each.path for each in new if scan.is_late(file_of(each.path)) and each.path not in self._unmarked]:
                log.warning("%d files are found late, since they sort before the last one, such as %s", len(late), late[0])
        else:
            self._present |= present
            self._drop([path for path in self._readers if self._storage.seems_gone(file_of(path))])
            self._read_changed(found)
            new = self._unread({**self._unmarked, **found})
        self._unmarked = {}
        self._add_files([each for each in new if self._is_marked(each)])

    def _look_at_hints(self) -> None:
        """Look at the objects that notifications name."""
        if self._hints is None or not self._has_scanned or not (hinted := self._hints.paths()):
            return
        try:
            statuses = {path: self._storage.status(path) for path in map(self._marked, hinted)}
        except OSError as error:  # is tried again in the next poll
            self._say_once(self._options.paths[0], error)
            return
        found = {path: status for path, status in statuses.items() if status is not None}
        found = self._with_parts(found, is_whole=False)
        self._read_changed(found)
        self._present.update(map(key_of, found))
        self._add_files([each for each in self._unread(found) if self._is_marked(each)])
        self._hints.done()

    def _marked(self, path: str) -> str:
        """Return the path of the file that a path is the marker of, or the path."""
        return path.removesuffix(self._options.marker) if self._options.complete_when == keys.MARKER else path

    def _share(self, path: str) -> Share:
        """Return whose a path is. Runs on the thread of ``Hints``."""
        file = self._marked(path)
        if not self._listing.matches(file):
            return Share.NOBODYS
        return Share.MINE if self._is_mine(str(bucket_of(file))) else Share.ANOTHERS

    def _unread(self, found: Mapping[str, FileStatus]) -> list[Found]:
        return [Found(path, status) for path, status in found.items() if self._is_new(path, status)]

    def _ask(self, path: str, status: FileStatus) -> None:
        """Ask, with others, whether a user has set the offset of a finished file."""
        self._to_ask[path] = status
        if len(self._to_ask) >= _ASKED_AT_ONCE:
            self._asked |= self._read_again(self._to_ask)
            self._to_ask = {}

    def _read_again(self, found: Mapping[str, FileStatus]) -> dict[str, FileStatus]:
        """Forget the finished files for which a user has set an offset, and return them."""
        finished = [path for path in found if self._finished.get(path) is not None]
        again = [each.path for each in self._stored(finished) if each.done is False]
        for path in again:
            self._finished.discard(path)
        return {path: found[path] for path in again}

    def _handle_again(self, found: Mapping[str, FileStatus]) -> None:
        """Find the files that a crash has left without their markers."""
        mine = [path for path in found if self._is_mine(str(bucket_of(path)))]
        for each in self._stored(mine):
            self._is_finished(each, found[each.path])

    def _is_mine(self, name: str) -> bool:
        return is_of_task(name, self._task, self._tasks)

    def _is_assigned(self, path: str, name: str) -> bool:
        """Return whether a file belongs to this task by its name in the assignment. Others are remembered."""
        if not self._is_mine(name):
            self._others.add(path)
            return False
        return True

    def _is_new(self, path: str, status: FileStatus) -> bool:
        if path in self._readers or path in self._others or path in self._unreadable or self._finished.has(key_of(path), status):
            return False
        if self._options.complete_when == keys.MARKER and file_of(path).endswith(self._options.marker):
            return False
        return self._is_assigned(path, str(bucket_of(path)))

    def _is_marked(self, file: Found) -> bool:
        """Return whether a file has the marker that it needs. Those without one are remembered."""
        if self._options.complete_when != keys.MARKER or self._is_there(file_of(file.path) + self._options.marker):
            return True
        self._unmarked[file.path] = file.status
        return False

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
        stored = {each.path: each.identity for each in self._stored(sorted({*new, *itertools.chain(*new.values())}))}
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
        for each, (path, status) in zip(stored, files, strict=True):
            if self._handling.has_ended(path):
                each = Stored(path)
            if self._is_finished(each, status):
                continue
            identity, done, finished = each.identity, each.done, self._finished.get(path)
            known = finished or self._dropped.pop(path, None) or identity
            delivered_again = key_of(path) in self._gone or (not self._handling.stays and done is True)
            if (finished is not None or done) and delivered_again and known is not None and status.size <= known.size:
                known = None
            self._gone.discard(key_of(path))
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

    def _is_finished(self, stored: Stored, status: FileStatus) -> bool:
        """Return whether it is stored that a file was finished, and note so."""
        path, identity = stored.path, stored.identity
        if not stored.done or identity is None or not identity.is_of(status):
            return False
        self._finished.add(path, identity)
        if not (stored.tagged and self._handling.stays):
            self._handling.add(path)  # the task ended before
        return True

    def _add(self, path: str, reader: LogReader | FileReader) -> None:
        self._readers[path] = reader
        self._turns.append(reader)

    def _wake(self, path: str) -> None:
        reader = self._idle.pop(path, None)
        if reader is not None:
            self._turns.append(reader)

    def _stored(self, paths: Sequence[str]) -> Iterator[Stored]:
        return stored_of(self.context.offset_storage_reader, paths)

    def _read_changed(self, found: Mapping[str, FileStatus]) -> None:
        """Read damaged files again that have changed."""
        for path, status in found.items():
            if self._unreadable.get(path) != status:
                self._unreadable.pop(path, None)

    def _drop(self, gone: Sequence[str]) -> None:
        """Forget files that are not there any more."""
        for path, reader in [(path, self._readers[path]) for path in gone]:
            if not reader.is_open:
                self._remove(reader)
                self._remember(path, reader.cursor.identity())

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
        self._look_at_hints()
        waiting = len(self._unstored) + self._handling.waiting
        if (waiting and time.monotonic() >= self._done_due) or waiting >= _DONE_FILES:
            self._done_due = time.monotonic() + _DONE_SECONDS
            return None  # so that the offsets of files that are done are stored, although others have records
        records = self._take(columnar=columnar)
        if not records and not self._unstored and not self._handling.waiting:
            # While a rotated log is waited for, or a file that may be complete, only time tells.
            self.context.wait(_RETRY_SECONDS if self._turns else max(0.0, min(_WAIT_SECONDS, self._scan_due - time.monotonic())))
            if not self._is_away:
                records = self._take(columnar=columnar)  # else the runtime waits, and has no wake-up to come
        return records or None

    @property
    def ended(self) -> bool | None:
        """False while only time tells whether files of the first scan are complete, for a micro-batch to read them; then None."""
        limits = self._options.limits
        longest = max(limits.quiet_seconds, limits.flush_seconds if math.isfinite(limits.flush_seconds) else 0.0)
        waits = bool(self._turns) and time.monotonic() - self._scanned_at < longest + _LEEWAY_SECONDS
        return False if waits else None

    def _take(self, *, columnar: bool) -> SourceColumns | list[SourceRecord]:
        """Give each file a turn until there are enough records."""
        self._wake_changed()
        taken = Taken()
        for block in self._blocks(taken):
            piece = self._batches.piece(block, self._options.batch_size - taken.count) if columnar else None
            if not taken.takes(piece):  # what was taken before is sent before
                self._pending.appendleft(block)
                break
            if piece is not None and not taken.records and taken.fits(piece):
                taken.add(piece)
                if (rest := block.rest(piece.columns.length)).data:
                    self._pending.append(rest)
            else:
                taken.records += [record for each in (*taken.end_pieces(), block) for record in self._rows(each)]
            if taken.count >= self._options.batch_size:
                break
        if not taken.are_columns:
            return taken.records + [record for each in taken.end_pieces() for record in self._rows(each)]
        for piece in taken.pieces:
            self._moves_on(piece.block.path)
            if piece.block.is_last:
                self._done(piece.block.path)
        return self._batches.columns(taken.pieces)

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
        if self._holds_back:
            self._maybe_held.add(reader.path)
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
        self._handling.add(path)

    def _moves_on(self, path: str) -> None:
        """Drop the offsets to store that the next records of a file make obsolete."""
        self._unstored.pop(path, None)
        self._handling.moves_on(path)

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
        stored += self._handling.offsets()
        self._unstored.clear()
        if stored or self._options.follows or not self._handling.stays:
            return stored  # an offset of a file to be moved or deleted is removed when that is done
        return self._finished.folded(self._present, {*self._handling.unhandled, *self._maybe_held})

    @property
    def commit_is_awaited(self) -> bool:
        """Whether files must be moved, deleted, or tagged, as after a crash between Kafka's acknowledgement and that."""
        return bool(self._handling.due(self._unstored))

    def commit(self) -> None:
        """Move, delete, or tag the files of which it is stored that they are done."""
        self._handling.handle(self._unstored)

    def metrics(self) -> Mapping[str, float]:
        return {**self._counts, "files-unhandled": self._handling.failures}

    def source_lag(self) -> SourceLag:
        return SourceLag(bytes=float(sum(each.lag_bytes for each in list(self._readers.values()))))

    def stop(self) -> None:
        self._watch.close()
        if self._hints is not None:
            self._hints.close()
        for reader in self._readers.values():
            reader.close()
        self._storage.close()
