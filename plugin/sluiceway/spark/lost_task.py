"""Finds the reason of a lost task in the message of Spark's error. No I/O."""

from __future__ import annotations

import re

from sluiceway.worker.task_launcher import TaskLostError

# Spark names the executor before the cause: "Lost task 0.0 in stage 3.0 (TID 3) (10.0.0.5 executor 1): ExecutorLostFailure ...".
_LOST_TASK = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\) \((?P<where>[^)]*)\): (?P<cause>.+)")
_JOB_ABORTED = re.compile(r"Job aborted due to stage failure: (?P<cause>.+)")
_EXCEPTION_CLASS = re.compile(r"^(?:\w+\.)+\w*(?:Exception|Error): ")
# Signs of a loss that the task did not cause. Exit code 143 is SIGTERM, which somebody sent: a container or worker was stopped.
_NO_FAULT = re.compile(
    r"unrelated to the running tasks|worker lost|worker shutting down|preempt|decommission|lost node|"
    r"exit(?:ed with)?(?: code| status):? (?:143|-100|-102)\b",
    re.IGNORECASE,
)
_MOST_CHARACTERS = 500


def lost_task(message: str) -> TaskLostError:
    """Return the error for a task whose Spark job failed with this message, the Java exception's.

    Its own message names the cause in one line. A job that ended for a reason other than its task, such as the application's
    end, is not a crash.
    """
    lost = _LOST_TASK.search(message)
    if lost is not None:
        cause = f"{_EXCEPTION_CLASS.sub('', lost['cause'])} ({lost['where']})"
        return TaskLostError(_shortened(cause), crashed=_NO_FAULT.search(message) is None)
    aborted = _JOB_ABORTED.search(message)
    first = aborted["cause"] if aborted is not None else next(iter(message.strip().splitlines()), "")
    return TaskLostError(_shortened(_EXCEPTION_CLASS.sub("", first)) or "Spark gave no reason", crashed=False)


def _shortened(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
