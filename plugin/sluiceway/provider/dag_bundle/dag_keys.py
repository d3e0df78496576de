"""Parses the ``airflow.*`` keys of a connector's config, which describe its DAG. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

from sluiceway.config import connector as connector_keys
from sluiceway.config.connector import CONNECTOR_CLASS, TOPICS, TOPICS_REGEX
from sluiceway.config.parsing import parse_list
from sluiceway.discovery import connector_class, is_sink
from sluiceway.errors import ConfigError, NotFoundError
from sluiceway.provider.dag_bundle.dag_ids import dag_id

MODE = connector_keys.MODE
SCHEDULE = "airflow.schedule"
RETRIES = "airflow.retries"
OWNER = "airflow.owner"
TAGS = "airflow.tags"
CATCHUP = "airflow.catchup"
START_DATE = "airflow.start.date"
CALLBACKS = ("airflow.on.failure.callback", "airflow.on.success.callback", "airflow.on.retry.callback")
"""Functions that Airflow calls with the task's context, as ``module.function``, separated by commas."""
DAG = "airflow.dag"
"""The id of the hand-written DAG that runs the connector. Without it, a DAG is generated."""

LONG_RUNNING, MICRO_BATCH = connector_keys.LONG_RUNNING, connector_keys.MICRO_BATCH

CONTINUOUS = "@continuous"

_ASSET, _LAG = "asset:", "lag:"


@dataclass(frozen=True, slots=True)
class DagKeys:
    """The parsed keys."""

    mode: str = LONG_RUNNING
    schedule: str | None = CONTINUOUS
    """A cron expression or preset; None if the DAG runs only when triggered, by assets or by lag."""
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
    catchup: bool = False
    start_date: datetime | None = None
    callbacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def parse(cls, config: Mapping[str, str]) -> DagKeys:
        """Return the keys of a connector's config; raises ConfigError for an invalid key."""
        mode = config.get(MODE, LONG_RUNNING)
        if mode not in (LONG_RUNNING, MICRO_BATCH):
            raise ConfigError(MODE, mode, f"String must be one of {LONG_RUNNING}, {MICRO_BATCH}")
        text = config.get(SCHEDULE) or None
        if mode == LONG_RUNNING:
            if text not in (None, CONTINUOUS):
                raise ConfigError(SCHEDULE, text, f"only connectors with {MODE}={MICRO_BATCH} run by a schedule")
            text = CONTINUOUS
        assets, any_asset = _assets(text)
        return cls(
            mode=mode,
            schedule=None if text is not None and text.startswith((_ASSET, _LAG)) else text,
            retries=_count(RETRIES, config.get(RETRIES)),
            owner=config.get(OWNER) or "airflow",
            tags=_list(config.get(TAGS)),
            assets=assets,
            any_asset=any_asset,
            lag=_lag(text, config),
            catchup=_boolean(CATCHUP, config.get(CATCHUP)),
            start_date=_moment(START_DATE, config.get(START_DATE)),
            callbacks={key: names for key in CALLBACKS if (names := _list(config.get(key)))},
        )


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
    if not text.strip().isdigit():
        raise ConfigError(key, text, "Not a number of retries")
    return int(text)


def _list(text: str | None) -> tuple[str, ...]:
    return tuple(parse_list(text))


def _assets(schedule: str | None) -> tuple[tuple[str, ...], bool]:
    """Return the URIs in ``asset:<uri>,<uri>`` (all of them) or ``asset:<uri>|<uri>`` (any of them), and whether any counts."""
    if schedule is None or not schedule.startswith(_ASSET):
        return (), False
    text = schedule[len(_ASSET) :]
    any_of = "|" in text
    uris = tuple(each.strip() for each in text.split("|" if any_of else ",") if each.strip())
    if not uris or not all("://" in each for each in uris):
        raise ConfigError(SCHEDULE, schedule, f"after {_ASSET} come URIs of assets, separated by commas (all) or | (any)")
    return uris, any_of


def _lag(schedule: str | None, config: Mapping[str, str]) -> int | None:
    if schedule is None or not schedule.startswith(_LAG):
        return None
    text = schedule[len(_LAG) :].strip()
    if not text.isdigit() or int(text) == 0:
        raise ConfigError(SCHEDULE, schedule, f"after {_LAG} comes how many records there must be, such as {_LAG}1000")
    if not is_sink_config(config):
        raise ConfigError(SCHEDULE, schedule, "only a sink has a lag: Kafka does not know how much a source has left")
    return int(text)


def _boolean(key: str, text: str | None) -> bool:
    if text is None or text.strip().lower() in ("true", "false"):
        return text is not None and text.strip().lower() == "true"
    raise ConfigError(key, text, "Expected value to be either true or false")


def _moment(key: str, text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError as error:
        raise ConfigError(key, text, "must be a date or a moment in ISO 8601, such as 2024-01-31") from error
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
