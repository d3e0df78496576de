"""Fences: a driver, task, or writer that another has replaced writes nothing more."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "fence-generation",
        "worker/lease.py",
        "self.generation = self._written + 1",
        "self.generation = self._written",
        "A new driver writes statuses of its predecessor's generation.",
    ),
    Mutant(
        "fence-later-driver",
        "worker/lease.py",
        "if is_newer(status, self._written, self._worker_id):",
        "if is_newer(status, self._written + 1, self._worker_id):",
        "A driver goes on after the next one has taken its connector over.",
    ),
    Mutant(
        "fence-reacquire",
        "worker/lease.py",
        "        self._verify_newest()\n        self._writer.fence()\n        self._verify_newest()",
        "        self._writer.fence()\n        self._verify_newest()",
        "A driver whose producer was idle fences the driver that has replaced it.",
    ),
    Mutant(
        "fence-gives-up",
        "worker/lease.py",
        "                if fenced == _FENCED_TIMES:\n                    raise",
        "                if fenced == _FENCED_TIMES:\n                    fenced = 0",
        "A driver that is fenced again and again never ends.",
    ),
    Mutant(
        "fence-earlier-tasks",
        "worker/zombie_fencing.py",
        "if entry.task_count and (entry.task_count, tasks) != (1, 1):",
        "if entry.task_count and tasks != 1:",
        "Earlier exactly-once tasks are not fenced when one task replaces several.",
    ),
    Mutant(
        "fence-error",
        "worker/zombie_fencing.py",
        "        if error is not None:\n            raise ConnectError(",
        "        if error is not None and what.endswith('-0'):\n            raise ConnectError(",
        "Tasks start although an earlier one could not be fenced.",
    ),
    Mutant(
        "fence-heartbeat-generation",
        "storage/status_state.py",
        "if last is None or (last.worker_id, last.generation) != (status.worker_id, status.generation):",
        "if last is None or last.worker_id != status.worker_id:",
        "A heartbeat of an earlier generation keeps a status alive.",
    ),
    Mutant(
        "fence-late-report",
        "storage/status_state.py",
        "return known is not None and status.worker_id == known.worker_id and status.generation < known.generation",
        "return False",
        "The report of a task that was replaced overwrites the new task's status.",
    ),
    Mutant(
        "fence-writer-closed",
        "kafka/fenced_writer.py",
        "        except ConnectError:\n            self.close()  # the producer is fenced, or its state is unknown\n"
        "            raise",
        "        except ConnectError:\n            raise",
        "A fenced writer counts as active.",
    ),
    Mutant(
        "fence-dead-drivers-task",
        "herder/states.py",
        "if task.generation < connector.generation and task.worker_id != connector.worker_id:",
        "if False:",
        "A dead driver's task is reported as RUNNING.",
    ),
    Mutant(
        "fence-connect-commit",
        "worker/connector_runner.py",
        "                self._tasks.release()",
        "                self._tasks.abandon()",
        "A sink repeats records when a Kafka Connect worker comes up beside its driver.",
        tests=("tests/unit/worker/test_connector_runner.py",),
    ),
    Mutant(
        "fence-connect-release",
        "worker/task_commands.py",
        "return TaskCommand.STOP if record.value == spec.worker_id.encode() else None",
        "return None",
        "Tasks do not commit before Kafka Connect gets their connector.",
        tests=("tests/unit/worker/test_kafka_task_services.py",),
    ),
    Mutant(
        "fence-connect-generation",
        "worker/task_commands.py",
        "if change.status.generation > spec.generation and not change.status.of_connect:",
        "if change.status.generation > spec.generation:",
        "A task ends without a commit at a status of a Kafka Connect worker.",
        tests=("tests/unit/worker/test_kafka_task_services.py",),
    ),
    Mutant(
        "fence-connect-status",
        "worker/task_host/shared_services.py",
        "return other is None or not (other.of_connect or other.generation > status.generation)",
        "return other is None or not other.generation > status.generation",
        "A task host writes its status over that of the Kafka Connect worker that runs the task now.",
        tests=("tests/unit/worker/task_host/test_shared_services.py",),
    ),
)
