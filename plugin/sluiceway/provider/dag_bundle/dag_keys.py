"""Parses the ``airflow.*`` keys of a connector's config, which describe its DAG. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sluiceway.config.connector import CALLBACKS, CONNECTOR_CLASS, TOPICS, TOPICS_REGEX
from sluiceway.config.intervals import IntervalSettings
from sluiceway.config.masking import masked
from sluiceway.config.parsing import parse_list
from sluiceway.config.schedules import (
    CATCHUP,
    CONTINUOUS,
    DAG,
    LONG_RUNNING,
    MICRO_BATCH,
    MODE,
    SCHEDULE,
    START_DATE,
    assets_of,
    check_schedule,
    is_event,
    is_on_change,
    lag_of,
    moment,
)
from sluiceway.discovery import connector_class, is_sink
from sluiceway.errors import ConfigError, NotFoundError
from sluiceway.java.numbers import whole_number
from sluiceway.provider.dag_bundle.dag_ids import dag_id

__all__ = ["DAG", "LONG_RUNNING", "MICRO_BATCH", "MODE", "DagKeys", "dag_config", "dag_of", "is_generated", "is_sink_config"]

_AIRFLOW = "airflow"
_OF_DAG = (CONNECTOR_CLASS, TOPICS, TOPICS_REGEX)
RETRIES = "airflow.retries"
OWNER = "airflow.owner"
TAGS = "airflow.tags"


@dataclass(frozen=True, slots=True)
class DagKeys:
    """The parsed keys."""

    mode: str = LONG_RUNNING
    schedule: str | None = CONTINUOUS
    """A cron expression or preset; None if the DAG runs only when triggered, by assets, by lag, or by changes."""
    retries: int | None = None
    """None for the operator's default."""
    owner: str = "airflow"
    tags: tuple[str, ...] = ()
    assets: tuple[str, ...] = ()
    """URIs of the assets whose events trigger a run."""
    any_asset: bool = False
    """Whether an event of any one asset triggers a run, rather than events of all."""
    lag: int | None = None
    """The number of available records at which a sink's run starts."""
    on_change: bool = False
    """Whether a source's run starts when its system has something new."""
    catchup: bool = False
    max_active_runs: int = 1
    start_date: datetime | None = None
    callbacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def parse(cls, config: Mapping[str, str]) -> DagKeys:
        """Return the keys of a connector's config; raises ConfigError for an invalid key."""
        mode = config.get(MODE, LONG_RUNNING)
        if mode not in (LONG_RUNNING, MICRO_BATCH):
            raise ConfigError(MODE, mode, f"String must be one of {LONG_RUNNING}, {MICRO_BATCH}")
        check_schedule(config, is_sink=is_sink_config(config))
        text = config.get(SCHEDULE) or None
        if mode == LONG_RUNNING:
            text = CONTINUOUS
        assets, any_asset = assets_of(text)
        intervals = IntervalSettings.of(config)
        return cls(
            mode=mode,
            schedule=None if text is not None and is_event(text) else text,
            retries=_count(RETRIES, config.get(RETRIES)),
            owner=config.get(OWNER) or "airflow",
            tags=_list(config.get(TAGS)),
            assets=assets,
            any_asset=any_asset,
            lag=lag_of(text, is_sink=is_sink_config(config)),
            on_change=is_on_change(text, is_sink=is_sink_config(config)),
            catchup=_boolean(CATCHUP, config.get(CATCHUP)),
            max_active_runs=intervals.max_active_runs if intervals.is_exact else 1,
            start_date=moment(START_DATE, config.get(START_DATE)),
            callbacks={key: names for key in CALLBACKS if (names := _list(config.get(key)))},
        )


def dag_config(config: Mapping[str, str]) -> dict[str, str]:
    """Return the keys that a connector's generated DAG depends on, without secrets: its class, its kind, and ``airflow.*``.

    Airflow shows a DAG's file, and stores the DAG, for everybody who may read it.
    """
    return masked({key: value for key, value in config.items() if key in _OF_DAG or key.startswith(f"{_AIRFLOW}.")})


def is_sink_config(config: Mapping[str, str]) -> bool:
    """Return whether a config is a sink's: it has ``topics`` or ``topics.regex``, and its class is not a source.

    The class decides because a source may define such a key too, as MirrorSource does. A class that is not installed here counts
    as a sink.
    """
    if TOPICS not in config and TOPICS_REGEX not in config:
        return False
    try:
        return is_sink(connector_class(config.get(CONNECTOR_CLASS, "")))
    except (NotFoundError, ConfigError):
        return True


def dag_of(connector: str, config: Mapping[str, str]) -> str:
    """Return the id of the DAG that runs a connector; raises ConfigError if the name is too long for a DAG id."""
    return config.get(DAG) or dag_id(connector)


def is_generated(config: Mapping[str, str]) -> bool:
    """Return whether the connector's DAG is generated, rather than written by hand."""
    return not config.get(DAG)


def _count(key: str, text: str | None) -> int | None:
    if text is None:
        return None
    number = whole_number(text.strip())
    if number is None:
        raise ConfigError(key, text, "Not a number of retries")
    return number


def _list(text: str | None) -> tuple[str, ...]:
    return tuple(parse_list(text))


def _boolean(key: str, text: str | None) -> bool:
    if text is None or text.strip().lower() in ("true", "false"):
        return text is not None and text.strip().lower() == "true"
    raise ConfigError(key, text, "Expected value to be either true or false")
