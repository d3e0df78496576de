"""Locks: of two processes or threads, one acts."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "lock-file-leadership",
        "provider/pause_sync/leadership.py",
        "            file.close()\n            return False\n        self._file = file",
        "            pass\n        self._file = file",
        "Two API servers run the pause sync.",
    ),
    Mutant(
        "lock-database-leadership",
        "provider/pause_sync/leadership.py",
        "        if not taken:\n            connection.close()\n            return False\n",
        "",
        "Two API servers with PostgreSQL run the pause sync.",
    ),
    Mutant(
        "lock-start-gate",
        "worker/start_gate.py",
        "                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "                pass",
        "More drivers start at once than there are cores.",
    ),
    Mutant(
        "lock-start-released-once",
        "worker/start_gate.py",
        "            held, self._held = self._held, False",
        "            held = self._held",
        "A start that ends twice gives two others its slot.",
    ),
    Mutant(
        "lock-commit-log",
        "connectors/files/commit_log.py",
        "if not self._fs.create(self._path(entry.number), data) and not self._is_own(entry):",
        "if not self._fs.create(self._path(entry.number), data) and False:",
        "Two file sinks commit the same entry.",
    ),
    Mutant(
        "lock-commit-log-deleted",
        "connectors/files/commit_log.py",
        "        if max(numbers, default=0) > entry.number:",
        "        if False:",
        "A file sink that was away for long commits behind its successor.",
    ),
    Mutant(
        "lock-jdbc-generation",
        "connectors/jdbc/sink/offsets.py",
        "if self._writer.execute_many(self._sql.update, rows) != len(offsets):",
        "if self._writer.execute_many(self._sql.update, rows) > len(offsets):",
        "A JDBC sink whose partition another task has taken over commits.",
        tests=("tests/integration/test_jdbc_sink.py::test_an_earlier_task_is_fenced_by_a_later_one[sqlite]",),
    ),
    Mutant(
        "lock-task-count",
        "storage/config_writes.py",
        "            if newest != tasks:",
        "            if False:",
        "A driver that has fenced an older set of tasks starts them.",
    ),
    Mutant(
        "lock-transaction-requests",
        "runtime/source/transaction_boundary.py",
        "            if before not in (CommitAction.CONTINUE, action):",
        "            if False:",
        "A commit and an abort of the same transaction are both accepted.",
    ),
    Mutant(
        "lock-range-planner",
        "connectors/cdc/ranges.py",
        "            self._after = last\n            return found",
        "            return found",
        "Two threads read the same range of a snapshot.",
    ),
)
