"""The source of folders, dumps, and logs."""

from mutants.mutant import Mutant

_READERS, _TASK, _CSV = "connectors/folder/readers.py", "connectors/folder/task.py", "connectors/folder/csv_format.py"
_IDENTITY, _ROTATION = "connectors/folder/identity.py", "connectors/folder/rotation.py"
_ROTATIONS = ("tests/unit/connectors/folder/test_rotations.py",)
_TASKS = ("tests/unit/connectors/folder/test_task.py",)
_FORMATS = ("tests/unit/connectors/folder/test_formats.py",)

MUTANTS = (
    Mutant(
        "folder-replaced",
        _READERS,
        "            if file.may_change and not self._cursor.fits(file):\n",
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
)
