"""Pause, resume, and the states that are shown."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "state-stale-driver",
        "herder/states.py",
        "return State.UNASSIGNED if stale else recorded",
        "return recorded",
        "A connector whose driver is dead is reported as RUNNING.",
    ),
    Mutant(
        "state-failed",
        "herder/states.py",
        "if recorded is State.FAILED or (recorded in _ACTIVE and not stale):",
        "if recorded in _ACTIVE and not stale:",
        "A failure is not shown once the driver has ended.",
    ),
    Mutant(
        "state-stale-task",
        "herder/states.py",
        "    if clock.stale(task):\n",
        "    if False:\n",
        "A task that hangs is reported as RUNNING.",
    ),
    Mutant(
        "state-stopped-tasks",
        "herder/states.py",
        "        return _in_state(status, state), {}\n",
        "        return _in_state(status, state), dict(tasks)\n",
        "A stopped connector shows tasks.",
    ),
    Mutant(
        "state-default-target",
        "storage/config_state.py",
        "target_state=connector.target_state or TargetState.STARTED,",
        "target_state=connector.target_state or TargetState.PAUSED,",
        "A new connector is paused.",
    ),
    Mutant(
        "state-deleted",
        "storage/config_state.py",
        "if removed is not None and (removed.target_state is not None or removed.task_count is not None):",
        "if removed is not None and removed.target_state is not None:",
        "The tasks of a deleted connector are not fenced by the next of its name.",
    ),
    Mutant(
        "state-inconsistent",
        "storage/config_state.py",
        "connector.inconsistent = len(tasks) < record.tasks",
        "connector.inconsistent = False",
        "A connector runs with part of its task configs.",
    ),
    Mutant(
        "state-sink-pause",
        "runtime/sink/worker_sink_task.py",
        "        with self._wait.task_call():\n            self._offsets.commit_and_wait()\n        self._consumer.pause()",
        "        self._consumer.pause()",
        "A paused sink has not committed its offsets.",
    ),
    Mutant(
        "state-source-pause",
        "runtime/source/worker_source_task.py",
        "        self._apply(self._delivery.when_stopping())\n        self._reporter.report(State.PAUSED)",
        "        self._reporter.report(State.PAUSED)",
        "A paused source has not stored its offsets.",
    ),
    Mutant(
        "state-resume-paused-by-task",
        "runtime/sink/task_consumer.py",
        "self._reader.resume(self.assignment - self._paused_by_task - self._finished())",
        "self._reader.resume(self.assignment - self._finished())",
        "A resumed sink reads partitions that its task has paused.",
    ),
    Mutant(
        "state-pause-new-partitions",
        "runtime/sink/task_consumer.py",
        "        if not self._paused:\n            self._reader.resume(partitions - self._finished())",
        "        self._reader.resume(partitions - self._finished())",
        "A paused sink reads again when its task resumes partitions.",
    ),
)
