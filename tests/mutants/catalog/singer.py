"""Singer's taps: states, messages, processes, and their installation."""

from mutants.mutant import Mutant

_RUN, _MESSAGES, _TABLES = (f"connectors/singer/{name}.py" for name in ("run", "messages", "tables"))
_SOURCE, _PROCESS, _TAP = (f"connectors/singer/{name}.py" for name in ("source", "process", "tap"))
_UNIT = "tests/unit/connectors/singer/"
_OF_RUN, _OF_TASK = (f"{_UNIT}test_run.py",), (f"{_UNIT}test_task.py",)
_OF_TABLES = (f"{_UNIT}test_tables.py",)

MUTANTS = (
    Mutant(
        "singer-state-ahead",
        _RUN,
        "        before, groups = self.state, _Groups(self.state)\n        for message in decode(data) if data else ():\n",
        "        messages = decode(data) if data else ()\n"
        "        for each in messages:\n"
        "            if each.type == STATE:\n"
        "                self._note(each)\n"
        "        before, groups = self.state, _Groups(self.state)\n"
        "        for message in messages:\n",
        "A record has a state that comes after it.",
        tests=_OF_RUN,
    ),
    Mutant(
        "singer-empty-state",
        _RUN,
        "        if not empty:\n            self.state = text\n",
        "        self.state = text\n",
        "An empty state replaces the stored one.",
        tests=_OF_RUN,
    ),
    Mutant(
        "singer-current",
        _MESSAGES,
        "    if not isinstance(current, str) or (",
        "    if True or (",
        "A tap that was killed before a stream's first bookmark passes over the stream.",
        tests=_OF_RUN,
    ),
    Mutant(
        "singer-last-state",
        _SOURCE,
        "        self._stored = self._safe\n        return [(self._partition, offset)]\n",
        "        self._stored = self._safe\n        return ()\n",
        "The last state of a run is not stored.",
        tests=_OF_TASK,
    ),
    Mutant(
        "singer-exit-code",
        _SOURCE,
        "                        if code:\n                            raise process.failure(code)\n",
        "",
        "A tap that failed is taken for one that has ended well.",
        tests=_OF_TASK,
    ),
    Mutant(
        "singer-secrets-in-log",
        _PROCESS,
        "                line = line.replace(secret, HIDDEN)\n",
        "                pass\n",
        "The log has the tap's secrets.",
        tests=_OF_TASK,
    ),
    Mutant(
        "singer-open-files",
        _TAP,
        "os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600",
        "os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644",
        "Others can read the tap's config.",
        tests=_OF_TASK,
    ),
    Mutant(
        "singer-orphan",
        "child_processes.py",
        "ctypes.CDLL(None).prctl(1, 9); ",
        "",
        "A tap lives on after its task was killed.",
        tests=(
            "tests/integration/test_singer_source.py::test_a_tap_dies_with_a_killed_task_and_another_task_goes_on_from_the_state",
        ),
    ),
    Mutant(
        "singer-early-removal",
        _SOURCE,
        "                self._files.append(item.file)\n",
        "                item.file.unlink()\n",
        "A tap's file is removed before Kafka has its records.",
        tests=_OF_TASK,
    ),
    Mutant(
        "singer-rounded",
        "connectors/singer/fields.py",
        "traps=[Inexact, InvalidOperation]",
        "traps=[InvalidOperation]",
        "A number with more digits than its schema allows is rounded.",
        tests=_OF_TABLES,
    ),
    Mutant(
        "singer-required-key",
        _TABLES,
        "                if any(array.null_count and needed for",
        "                if any(False for",
        "Columns have null in a key that must not be null.",
        tests=_OF_TABLES,
    ),
    Mutant(
        "singer-other-packages",
        "singer_plugins/programs.py",
        '"-I", "-S", "-c", _RUN',
        '"-c", _RUN',
        "A tap runs with the packages of its Python.",
        tests=("tests/unit/singer_plugins/test_install.py",),
    ),
    Mutant(
        "singer-lock",
        "singer_plugins/install.py",
        " --hash=sha256:{digest}",
        "",
        "Another file than the locked one is installed.",
        tests=("tests/unit/singer_plugins/test_install.py",),
    ),
)
