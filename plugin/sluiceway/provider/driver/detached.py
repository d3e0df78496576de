"""A driver that a deferred task waits for, as Airflow stores it in the task's arguments. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.progress.run_summary import MAX_CHANGES


@dataclass(frozen=True, slots=True)
class DetachedDriver:
    """The state at the start of the wait. The keys of ``to_dict`` are those that 0.1.0 stored, ``restarts``, and ``since``."""

    name: str
    """The connector that the driver runs; for a backfill, the temporary one."""
    generation: int
    """The generation of the driver before."""
    time: float
    """The start of the wait, in seconds since the epoch."""
    progress: ConnectorProgress
    """The progress at the start of the wait."""
    restarts: int = 0
    """The number of ``DriverRestarts``."""
    since: int | None = None
    """When the connector's target state was set, in milliseconds since the epoch."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them, with the offsets of at most 1,000 partitions."""
        return {
            "name": self.name,
            "generation": self.generation,
            "time": self.time,
            "count": self.progress.count,
            "offsets": [list(each) for each in self.progress.offsets[:MAX_CHANGES]],
            "restarts": self.restarts,
            "since": self.since,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> DetachedDriver:
        """Return the driver that ``to_dict`` wrote."""
        progress = ConnectorProgress([(partition, offset) for partition, offset in stored["offsets"]], stored["count"])
        restarts, since = stored.get("restarts", 0), stored.get("since")
        return cls(str(stored["name"]), stored["generation"], stored["time"], progress, restarts, since)
