"""Shows the connectors of this cluster beside those of another one, between which they move. Runs in the API server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sluiceway.herder import ConnectorStatus
from sluiceway.rest.client import ConnectClient

Part = tuple[str, str]
"""The state of a connector or a task, and its worker."""

_SECONDS = 5.0  # within which the other cluster answers

HERE, THERE, BOTH, NOBODY = "here", "there", "both", "nobody"


class OtherCluster:
    """The cluster of ``sluiceway.migrate.with``. The administrator names it, so users cannot make the API server ask others."""

    def __init__(self, addresses: str) -> None:
        self._client = ConnectClient(addresses.split(","), timeout=_SECONDS)

    @property
    def address(self) -> str:
        """The address without a login."""
        return self._client.server

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Return the status of each connector by name, as Connect's REST API does. Blocks for up to 5 s. Raises RestError."""
        return self._client.statuses()


def side(connector: Part, tasks: Sequence[Part]) -> dict[str, Any]:
    """Return what the page shows of a connector on one cluster."""
    return {
        "state": connector[0],
        "tasks": dict(Counter(state for state, _ in tasks)),
        "workers": sorted({worker for _, worker in tasks or [connector]}),
    }


def side_here(status: ConnectorStatus) -> dict[str, Any]:
    connector = status.connector
    tasks = [(task.state.value, task.worker_id) for _, task in sorted(status.tasks.items())]
    return side((connector.state.value, connector.worker_id), tasks)


def side_there(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``side`` of a status in Connect's REST API."""
    connector, *tasks = ((part["state"], part["worker_id"]) for part in (status["connector"], *status["tasks"]))
    return side(connector, tasks)


def row(
    name: str, part: Mapping[str, Any] | None, here: Mapping[str, Any] | None, there: Mapping[str, Any] | None, lag: int | None
) -> dict[str, Any]:
    """Return a connector's row.

    Args:
        part: its part of ``views.described``; None if it does not exist here.
        here, there: its ``side`` on both clusters; None where it does not exist, or is not known.
        lag: of a sink, whose consumer group both sides have.
    """
    running = here is not None and _runs(here), there is not None and _runs(there)
    return {
        "name": name,
        "moving": part is not None and part["moving"],
        "moved_to": None if part is None else part["moved_to"],
        "here": here,
        "there": there,
        "run": {(True, True): BOTH, (True, False): HERE, (False, True): THERE, (False, False): NOBODY}[running],
        "lag": lag,
    }


def _runs(found: Mapping[str, Any]) -> bool:
    """Return whether a cluster runs a connector, or a task of it that has not ended yet."""
    return found["state"] == "RUNNING" or "RUNNING" in found["tasks"]
