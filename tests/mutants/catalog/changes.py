"""Runs of sources that start when there is something new."""

from mutants.mutant import Mutant

_GATE, _THREAD = "provider/triggers/change_gate.py", "provider/triggers/watch_thread.py"
_OF_GATE = ("tests/unit/provider/triggers/test_change_gate.py",)
_OF_TRIGGER = ("tests/unit/provider/triggers/test_change_trigger.py",)
_OF_FOLDER = ("tests/unit/connectors/folder/test_source_watch.py",)

MUTANTS = (
    Mutant(
        "change-during",
        _GATE,
        "            return mark != fired.mark\n",
        "            self._fired = _Fired(mark, driver.generation, self._clock())\n            return False\n",
        "What changes while a run is under way starts no other one.",
        tests=_OF_GATE,
    ),
    Mutant(
        "change-queue",
        _GATE,
        "        if driver.generation > fired.generation and driver.clean and self._has_ended(driver.generation):\n",
        "        if driver.clean:\n",
        "A source that changes all the time has a queue of runs.",
        tests=_OF_GATE,
    ),
    Mutant(
        "change-resumed",
        _GATE,
        "if paused or was_paused or driver.lives",
        "if paused or driver.lives",
        "An event right after a resume is lost, because Airflow drops it.",
        tests=_OF_GATE,
    ),
    Mutant(
        "change-failed",
        _GATE,
        " and driver.clean and self._has_ended",
        " and self._has_ended",
        "A run that failed is never required again.",
        tests=_OF_GATE,
    ),
    Mutant(
        "change-secret",
        _THREAD,
        ".hidden(str(error))",
        ".hidden('') + str(error)",
        "An error of the other system shows a resolved password.",
        tests=_OF_TRIGGER,
    ),
    Mutant(
        "change-config",
        _THREAD,
        "        if watched == (None if known is None else known.config):\n",
        "        if known is not None and watched is not None:\n",
        "A changed config is not watched.",
        tests=_OF_TRIGGER,
    ),
    Mutant(
        "change-gone",
        "connectors/folder/source_watch.py",
        "            self._changes += len(present - self._seen)\n",
        "            self._changes += len(present ^ self._seen)\n",
        "A file that a run deletes starts the next run.",
        tests=_OF_FOLDER,
    ),
    Mutant(
        "change-stable",
        "connectors/folder/task.py",
        "        return False if waits else None\n",
        "        return None\n",
        "A micro-batch ends before a file is complete, which no later change tells.",
        tests=("tests/unit/connectors/folder/test_micro_batches.py",),
    ),
)
