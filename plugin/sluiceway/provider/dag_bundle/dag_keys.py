"""A connector config's ``airflow.*`` keys: how its DAG looks. No I/O; also says which DAG runs which connector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

from sluiceway.config.connector import APPLICATION, CONNECTOR_CLASS, TOPICS, TOPICS_REGEX
from sluiceway.config.masking import masked
from sluiceway.config.parsing import parse_list
from sluiceway.discovery import connector_class, is_sink
from sluiceway.errors import ConfigError, NotFoundError
from sluiceway.provider.dag_bundle.dag_ids import dag_id

MODE = "airflow.mode"
SCHEDULE = "airflow.schedule"
RETRIES = "airflow.retries"
OWNER = "airflow.owner"
TAGS = "airflow.tags"
CATCHUP = "airflow.catchup"
START_DATE = "airflow.start.date"
CALLBACKS = ("airflow.on.failure.callback", "airflow.on.success.callback", "airflow.on.retry.callback")
"""Each names functions that Airflow calls with the task's context, as ``module.function``, separated by commas."""
DAG = "airflow.dag"
"""Names the hand-written DAG that runs the connector; none is generated then."""
"""Names the Spark application that the connector shares with others."""

LONG_RUNNING = "long-running"
MICRO_BATCH = "micro-batch"

CONTINUOUS = "@continuous"

_ASSET, _LAG = "asset:", "lag:"


@dataclass(frozen=True, slots=True)
class DagKeys:
    """The parsed keys. ``schedule`` None: the DAG runs only when it is triggered. ``retries`` None: the operator's default.

    ``assets``: URIs of assets that the DAG follows, ``any_asset`` one of them or all; ``lag``: how many records a sink must have
    left for a run. With either, ``schedule`` is None.
    """

    mode: str = LONG_RUNNING
    schedule: str | None = CONTINUOUS
    retries: int | None = None
    owner: str = "airflow"
    tags: tuple[str, ...] = ()
    assets: tuple[str, ...] = ()
    any_asset: bool = False
    lag: int | None = None
    catchup: bool = False
    start_date: datetime | None = None
    callbacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    application: str | None = None

    @classmethod
    def parse(cls, config: Mapping[str, str]) -> DagKeys:
        """Return the keys of a connector config; raises ConfigError for what cannot be a DAG."""
        mode = config.get(MODE, LONG_RUNNING)
        if mode not in (LONG_RUNNING, MICRO_BATCH):
            raise ConfigError(MODE, mode, f"String must be one of {LONG_RUNNING}, {MICRO_BATCH}")
        text = config.get(SCHEDULE) or None
        application = config.get(APPLICATION) or None
        if mode == LONG_RUNNING:
            if text not in (None, CONTINUOUS):
                raise ConfigError(SCHEDULE, text, f"only connectors with {MODE}={MICRO_BATCH} run by a schedule")
            text = CONTINUOUS
        elif application:
            raise ConfigError(APPLICATION, application, f"only connectors with {MODE}={LONG_RUNNING} can share an application")
        assets, any_asset = _assets(text)
        return cls(
            mode=mode,
            schedule=None if text is not None and text.startswith((_ASSET, _LAG)) else text,
            retries=_count(RETRIES, config.get(RETRIES)),
            owner=config.get(OWNER) or "airflow",
            tags=tuple(parse_list(config.get(TAGS))),
            assets=assets,
            any_asset=any_asset,
            lag=_lag(text, config),
            catchup=_boolean(CATCHUP, config.get(CATCHUP)),
            start_date=_moment(START_DATE, config.get(START_DATE)),
            callbacks={key: names for key in CALLBACKS if (names := tuple(parse_list(config.get(key))))},
            application=application,
        )


def inlined(config: Mapping[str, str]) -> dict[str, str]:
    """Return a config as its generated DAG shows it: without what looks like a secret, which belongs into no file and no DAG."""
    return masked(config)


def is_sink_config(config: Mapping[str, str]) -> bool:
    """Whether a config is a sink's: it has ``topics`` or ``topics.regex``, and its class, if it is installed here, is no source.

    The class is asked because a source may have such a key of its own; MirrorSource has.
    """
    if TOPICS not in config and TOPICS_REGEX not in config:
        return False
    try:
        return is_sink(connector_class(config.get(CONNECTOR_CLASS, "")))
    except (NotFoundError, ConfigError):
        return True


def dag_of(connector: str, config: Mapping[str, str]) -> str:
    """Return the id of the DAG that runs a connector; raises ConfigError when the name is too long for one."""
    return config.get(DAG) or dag_id(connector)


def is_generated(config: Mapping[str, str]) -> bool:
    """Whether the connector's DAG is made from the config topic, and not written by hand."""
    return not config.get(DAG)


def _count(key: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.strip().isdigit():
        raise ConfigError(key, text, "Not a number of retries")
    return int(text)


def _assets(schedule: str | None) -> tuple[tuple[str, ...], bool]:
    """Return the URIs in ``asset:<uri>,<uri>`` (all of them) or ``asset:<uri>|<uri>`` (any of them), and whether it is any."""
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
