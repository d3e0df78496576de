"""The source of folders, dumps, and logs."""

from mutants.mutant import Mutant

_READERS, _TASK, _CSV = "connectors/folder/readers.py", "connectors/folder/task.py", "connectors/folder/csv_format.py"
_IDENTITY, _ROTATION = "connectors/folder/identity.py", "connectors/folder/rotation.py"
_REMOTE, _TABLES = "connectors/folder/remote_files.py", "connectors/folder/tables.py"
_OBJECTS = ("tests/unit/connectors/folder/test_remote_files.py",)
_OF_TABLES = ("tests/unit/connectors/folder/test_tables.py",)
_ROTATIONS = ("tests/unit/connectors/folder/test_rotations.py",)
_TASKS = ("tests/unit/connectors/folder/test_task.py",)
_FORMATS = ("tests/unit/connectors/folder/test_formats.py",)

MUTANTS = (
    Mutant(
        "folder-replaced",
        _READERS,
        "            if file.may_change and not file.has(self._cursor):\n",
        "            if False:\n",
        "What overwrites a log is taken for its continuation.",
        tests=_ROTATIONS,
    ),
    Mutant(
        "folder-mark",
        _IDENTITY,
        "        if Checksum.of(tail) != self.mark:\n",
        "        if False:\n",
        "A log that begins like the one that was read is taken for it.",
        tests=_ROTATIONS,
    ),
    Mutant(
        "folder-search",
        _READERS,
        "        others = [each for each in generations if each not in same] if identity.position else []\n",
        "        others: list[Generation] = []\n",
        "A log that was copied or compressed is not found after a restart.",
        tests=_ROTATIONS,
    ),
    Mutant(
        "folder-between",
        _ROTATION,
        "        return ordered[ordered.index(known) + 1 :]\n",
        "        return []\n",
        "Generations that were rotated while a task was stopped are passed over.",
        tests=_ROTATIONS,
    ),
    Mutant(
        "folder-count-up",
        _ROTATION,
        "        return numbered if _counts_up(numbered) else numbered[::-1]\n",
        "        return numbered[::-1]\n",
        "Logs whose newest generation has the highest number are read in the wrong order.",
        tests=_ROTATIONS,
    ),
    Mutant(
        "folder-late",
        _READERS,
        "            over = not is_current and self._is_quiet(status)\n",
        "            over = not is_current\n",
        "The last lines that a program writes to a log that was renamed are lost.",
        tests=_ROTATIONS,
    ),
    Mutant(
        "folder-never-read",
        _READERS,
        "            if is_current and self._cursor.position == 0 and status != self._began:\n",
        "            if False:\n",
        "A log that is copied and truncated before its first line was read is lost.",
        tests=_ROTATIONS,
    ),
    Mutant(
        "folder-lost-unsaid",
        _READERS,
        "            if not self._left:\n",
        "            if False:\n",
        "A generation that is gone is passed over without a warning.",
        tests=_ROTATIONS,
    ),
    Mutant(
        "folder-too-early",
        _TASK,
        "                if status is not None and self._finished.has(path, status):  # otherwise there is more to read\n",
        "                if True:\n",
        "A file is deleted that came meanwhile under the name of one that was read.",
        tests=_TASKS,
    ),
    Mutant(
        "folder-redo",
        _TASK,
        "                    self._unhandled.add(path)  # the task ended before\n",
        "                    pass\n",
        "A file that was read before a crash is never moved.",
        tests=_TASKS,
    ),
    Mutant(
        "folder-replace",
        "connectors/folder/after_read.py",
        "        return target.samefile(source) or _same_content(source, target)  # a crash came before the deletion\n",
        "        return True\n",
        "A file is deleted because another one has its name where it would be moved.",
        tests=_TASKS,
    ),
    Mutant(
        "folder-bad-unreported",
        _TASK,
        "                self._bad(block, row, start, offset)\n",
        "                pass\n",
        "Bad rows are skipped although no errors are tolerated.",
        tests=_TASKS,
    ),
    Mutant(
        "folder-quotes",
        _CSV,
        "        if self._are_regular(array, quotes):\n",
        "        if True:\n",
        "A quote within a field shifts all records of a block.",
        tests=_FORMATS,
    ),
    Mutant(
        "folder-table-position",
        _TABLES,
        "            self._batches = _after(arrays, self._cursor.position)\n",
        "            self._batches = _after(arrays, 0)\n",
        "A restart sends the rows of a Parquet file again, with wrong positions.",
        tests=_OF_TABLES,
    ),
    Mutant(
        "folder-table-other",
        _TABLES,
        "        rows = known.position if known is not None and cursor.position and known.is_of(status) else 0\n",
        "        rows = known.position if known is not None else 0\n",
        "The first rows of another Parquet file with the same name are passed over.",
        tests=_OF_TABLES,
    ),
    Mutant(
        "folder-object-paths",
        _REMOTE,
        '    digest = hashlib.blake2b(f"{path}\\0{entry.version}"',
        '    digest = hashlib.blake2b(f"{entry.version}"',
        "Of two objects with the same content, one is taken for a link to the other.",
        tests=_OBJECTS,
    ),
    Mutant(
        "folder-storage-away",
        _TASK,
        "            self.context.waiting(error.strerror or str(error))\n            return\n",
        "            self.context.waiting(error.strerror or str(error))\n            found, folders = {}, {}\n",
        "A storage that does not answer is taken for an empty one.",
        tests=_OBJECTS,
    ),
    Mutant(
        "folder-object-move",
        _REMOTE,
        "            if existing.is_folder or existing.size != status.size or not self._same_content(old, new):\n",
        "            if False:\n",
        "A file that could not be moved, because another one has its name there, is deleted.",
        tests=_OBJECTS,
    ),
    Mutant(
        "folder-move-again",
        _TASK,
        "        again = [path for path, at in self._try_again.items() if at <= now]\n",
        "        again: list[str] = []\n",
        "A file that could not be moved stays until the task is restarted.",
        tests=_TASKS,
    ),
    Mutant(
        "folder-idle-commit",
        "runtime/source/worker_source_task.py",
        "        self._notify_commit(committed or (awaited and not self._delivery.has_uncommitted))\n",
        "        self._notify_commit(committed)\n",
        "A file that was read before a crash is moved only when another one comes.",
        tests=(
            "tests/integration/test_folder_source.py::test_a_file_that_was_finished_before_is_moved_at_the_start_also_exactly_once",
        ),
    ),
    Mutant(
        "folder-appended",
        _READERS,
        "            self._cursor = self._cursor.of(status if file.is_live else file.status())\n",
        "            self._cursor = self._cursor.of(status)\n",
        "What is appended to a remote file while it is read is passed over, and the file deleted.",
        tests=_OBJECTS,
    ),
)
