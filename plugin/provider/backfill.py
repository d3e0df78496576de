"""A backfill's run: a connector beside the live one that moves one window of time and is removed again. Pure.

Everything that Kafka keeps of a connector goes by its name (lease, statuses, source offsets, consumer group), so one with a
name of its own touches nothing of the live one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluiceway.config.connector import APPLICATION, NAME
from sluiceway.config.variables import references
from sluiceway.errors import ConfigError
from sluiceway.herder.client_overrides import GROUP
from sluiceway.provider.dag_keys import DAG, MICRO_BATCH, MODE, is_sink_config
from sluiceway.provider.run_variables import RUN

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
