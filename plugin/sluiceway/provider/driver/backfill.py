"""A backfill's run: a connector beside the live one that moves one window of time and is removed again. Pure.

Everything that Kafka keeps of a connector goes by its name (lease, statuses, source offsets, consumer group), so one with a
name of its own touches nothing of the live one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluiceway.config.connector import APPLICATION, NAME
from sluiceway.config.consumer_group import GROUP, default_group, sink_group
from sluiceway.config.variables import references
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.provider.dag_bundle.dag_keys import DAG, MICRO_BATCH, MODE, is_sink_config
from sluiceway.provider.driver.run_variables import RUN

_WINDOW = "sluicewayWindow"
# What says where a backfill has got to must not be shared with the live connector.
_NOT_ITS_OWN = (GROUP, APPLICATION)


@dataclass(frozen=True, slots=True)
class Backfill:
    """``name`` is the connector made for it, ``of`` the live one; ``start`` in milliseconds since the epoch."""

    name: str
    of: str
    sink: bool
    start: int
    config: Mapping[str, str] = field(repr=False)

    @classmethod
    def plan(cls, connector: str, config: Mapping[str, str], run: Mapping[str, str]) -> Backfill:
        """Return the connector for one run of a backfill, given the run's variables.

        A sink reads from the first record of the run's data interval on, and drops those after it; a source is bounded by what
        its config takes from the run (``${airflow:run:data_interval_start}``). Raises ConfigError for a source that takes
        nothing: it would move everything once more, for each run. So it does for an interval without length.
        """
        sink = is_sink_config(config)
        start, end = run["data_interval_start_ms"], run["data_interval_end_ms"]
        if int(start) >= int(end):
            raise ConfigError(
                f"Connector {connector} cannot be backfilled: the run's data interval has no length, as with a plain cron "
                "expression in Airflow 3. Give the DAG a CronDataIntervalTimetable."
            )
        if not sink and not any(each.path == RUN for each in references(config)):
            raise ConfigError(
                f"Connector {connector} cannot be backfilled: its config takes nothing from the run, so that each run would "
                f"move everything. Bound what it reads by ${{airflow:{RUN}:data_interval_start}} and "
                f"${{airflow:{RUN}:data_interval_end}}."
            )
        name = f"{connector}.backfill.{start}"
        own = {key: value for key, value in config.items() if key not in _NOT_ITS_OWN}
        own |= {NAME: name, DAG: f"{connector}.backfill", MODE: MICRO_BATCH}
        if sink:
            own = _windowed(own, start, end)
        return cls(name, connector, sink, int(start), own)

    def for_worker(self, worker: WorkerConfig) -> Backfill:
        """Return the backfill with a consumer group of its own, even if the worker's ``consumer.group.id`` is set.

        In the group of that key it would move the offsets of every other sink, and delete them at its end.
        """
        if not self.sink or has_own_group(worker, self.name, self.config):
            return self
        return replace(self, config={**self.config, GROUP: default_group(self.name)})


def has_own_group(worker: WorkerConfig, name: str, config: Mapping[str, str]) -> bool:
    """Whether no other connector reads in the consumer group of a backfill's sink."""
    return sink_group(worker, name, config) == default_group(name)


def _windowed(config: Mapping[str, str], start: str, end: str) -> dict[str, str]:
    """Return a sink's config with a filter before all its transforms, which may change the timestamps."""
    return {
        **config,
        "transforms": ",".join(filter(None, (_WINDOW, config.get("transforms", "").strip()))),
        f"transforms.{_WINDOW}.type": "Filter",
        f"transforms.{_WINDOW}.predicate": _WINDOW,
        f"transforms.{_WINDOW}.negate": "true",
        "predicates": ",".join(filter(None, (_WINDOW, config.get("predicates", "").strip()))),
        f"predicates.{_WINDOW}.type": "TimestampBetween",
        f"predicates.{_WINDOW}.from.ms": start,
        f"predicates.{_WINDOW}.to.ms": end,
    }
