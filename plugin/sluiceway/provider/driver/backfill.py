"""Plans the temporary connector that runs one DAG run of an Airflow backfill. No I/O.

It moves the records of the run's data interval and is deleted afterwards. Kafka stores lease, statuses, source offsets and
consumer group under the connector's name, so a connector with its own name leaves the live connector's state unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluiceway.config.connector import CONFIG_TASK, NAME
from sluiceway.config.consumer_group import GROUP, default_group, sink_group
from sluiceway.config.variables import references
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.provider.dag_bundle.dag_keys import DAG, MICRO_BATCH, MODE, is_sink_config
from sluiceway.provider.driver.run_variables import RUN

_WINDOW = "sluicewayWindow"


@dataclass(frozen=True, slots=True)
class Backfill:
    """A backfill's temporary connector."""

    name: str
    of: str
    """The live connector's name."""
    sink: bool
    start: int
    """The start of the data interval, in milliseconds since the epoch."""
    config: Mapping[str, str] = field(repr=False)

    @classmethod
    def plan(cls, connector: str, config: Mapping[str, str], run: Mapping[str, str]) -> Backfill:
        """Return the temporary connector of one run.

        A sink starts at the first record of the run's data interval and drops later ones. A source is limited by references to
        the run in its config (``${airflow:run:data_interval_start}``).

        Args:
            connector: the live connector's name.
            config: its config.
            run: the run's variables (``run_variables``).

        Raises:
            ConfigError: the data interval is empty, or a source's config does not refer to the run, so that each run would move
                all records.
        """
        sink = is_sink_config(config)
        start, end = run["data_interval_start_ms"], run["data_interval_end_ms"]
        if int(start) >= int(end):
            raise ConfigError(
                f"Connector {connector} cannot be backfilled: the run's data interval is empty, as with a plain cron expression "
                "in Airflow 3. Schedule the DAG with a CronDataIntervalTimetable."
            )
        if not sink and not any(each.path == RUN for each in references(config)):
            raise ConfigError(
                f"Connector {connector} cannot be backfilled: its config does not refer to the DAG run, so each run would move "
                f"all records. Limit what it reads with ${{airflow:{RUN}:data_interval_start}} and "
                f"${{airflow:{RUN}:data_interval_end}}."
            )
        name = f"{connector}.backfill.{start}"
        # It has a consumer group of its own, and each run creates it.
        own = {key: value for key, value in config.items() if key not in (GROUP, CONFIG_TASK)}
        own |= {NAME: name, DAG: f"{connector}.backfill", MODE: MICRO_BATCH}
        if sink:
            own = _windowed(own, start, end)
        return cls(name, connector, sink, int(start), own)

    def for_worker(self, worker: WorkerConfig) -> Backfill:
        """Return the backfill with its own consumer group, even if the worker sets ``consumer.group.id``.

        In the worker's group it would change the offsets of every other sink, and delete them when it ends.
        """
        if not self.sink or has_own_group(worker, self.name, self.config):
            return self
        return replace(self, config={**self.config, GROUP: default_group(self.name)})


def has_own_group(worker: WorkerConfig, name: str, config: Mapping[str, str]) -> bool:
    """Return whether a backfill's sink is the only connector in its consumer group."""
    return sink_group(worker, name, config) == default_group(name)


def _windowed(config: Mapping[str, str], start: str, end: str) -> dict[str, str]:
    """Return a sink's config with a timestamp filter before its transforms, which may change timestamps."""
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
