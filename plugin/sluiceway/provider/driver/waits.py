"""Waits of a connector's task between two drivers. Runs in the Airflow task."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from sluiceway.provider.driver.internal_topics import InternalTopics
from sluiceway.provider.driver.outage import Outage
from sluiceway.provider.driver.outcome import NextAction, before_start
from sluiceway.provider.settings import Settings

log = logging.getLogger(__name__)

_LINGER_POLL_SECONDS = 0.5


def await_resume(
    name: str, topics: InternalTopics, settings: Settings, is_paused: Callable[[], bool], is_killed: Callable[[], bool]
) -> bool:
    """Wait ``pause_linger`` seconds for a resume, and return whether it came. Restarting the task takes seconds longer.

    Returns False early if Airflow ends the task, if the connector is deleted, or if Airflow or Kafka does not answer.

    Args:
        name: the connector.
        topics: its Connect cluster.
        settings: Airflow's ``[sluiceway]`` section.
        is_paused: reads the DAG's paused flag; may raise.
        is_killed: whether Airflow ends the task.
    """
    deadline = time.monotonic() + settings.pause_linger
    if not settings.pause_linger:
        return False
    log.info("[%s|worker] The driver has drained; waiting %g s for a resume", name, settings.pause_linger)
    try:
        with topics.watched_entry(name) as read:
            while time.monotonic() < deadline and not is_killed():
                entry = read()
                if entry is None:
                    return False
                if not is_paused() and before_start(dag_paused=False, entry=entry) is NextAction.START:
                    return True
                time.sleep(min(settings.pause_poll_interval, _LINGER_POLL_SECONDS))
    except Exception as error:  # noqa: BLE001 (Airflow or Kafka does not answer; the scheduler restarts the task later)
        log.warning("[%s|worker] Cannot read whether the connector is resumed: %s", name, error)
    return False


def await_drained(name: str, topics: InternalTopics, settings: Settings, is_killed: Callable[[], bool]) -> None:
    """Wait until the driver of a task that somebody has marked, or whose run has ended, has drained: at most ``settle_time``.

    Airflow starts the next run at once, but that task's worker learns of its end with its next heartbeat only, and then gives it
    5 s. A driver that was started before would fence the one that drains, and repeat its last records.
    """
    deadline = time.monotonic() + settings.settle_time
    log.info("[%s|worker] Its driver belongs to a task that has ended; waiting until it has drained", name)
    while topics.driver(name).lives and time.monotonic() < deadline and not is_killed():
        time.sleep(min(settings.pause_poll_interval, _LINGER_POLL_SECONDS))


def interruption(is_paused: Callable[[], bool], is_killed: Callable[[], bool]) -> Callable[[], bool]:
    """Return a function that tells whether the wait before a restart must end: the DAG is paused, or Airflow ends the task."""
    outage = Outage("Cannot read whether the DAG is paused")

    def interrupted() -> bool:
        try:
            found = is_killed() or is_paused()
        except Exception as error:  # noqa: BLE001 (an outage of Airflow must not keep a connector from running)
            outage.failed(error)
            return False
        outage.answered()
        return found

    return interrupted
