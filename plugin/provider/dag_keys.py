"""A connector config's ``airflow.*`` keys: how its DAG looks. No I/O; also says which DAG runs which connector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.connector import CONNECTOR_CLASS, TASKS_MAX, TOPICS, TOPICS_REGEX
from sluiceway.discovery import connector_class, is_sink
from sluiceway.errors import ConfigError, NotFoundError
from sluiceway.provider.naming import dag_id

MODE = "airflow.mode"
SCHEDULE = "airflow.schedule"
RETRIES = "airflow.retries"
OWNER = "airflow.owner"
TAGS = "airflow.tags"
DAG = "airflow.dag"
"""Names the hand-written DAG that runs the connector; none is generated then."""

LONG_RUNNING = "long-running"
MICRO_BATCH = "micro-batch"

CONTINUOUS = "@continuous"

# All that a generated DAG depends on. The rest stays in the config topic: secrets do not belong into files and DAGs.
_INLINED = (CONNECTOR_CLASS, TASKS_MAX, TOPICS, TOPICS_REGEX, MODE, SCHEDULE, RETRIES, OWNER, TAGS)


@dataclass(frozen=True, slots=True)
class DagKeys:
    """The parsed keys. ``schedule`` None: the DAG runs only when it is triggered. ``retries`` None: the operator's default."""

    mode: str = LONG_RUNNING
    schedule: str | None = CONTINUOUS
    retries: int | None = None
    owner: str = "airflow"
    tags: tuple[str, ...] = ()

    @classmethod
    def parse(cls, config: Mapping[str, str]) -> DagKeys:
        """Return the keys of a connector config; raises ConfigError for what cannot be a DAG."""
        mode = config.get(MODE, LONG_RUNNING)
        if mode not in (LONG_RUNNING, MICRO_BATCH):
            raise ConfigError(MODE, mode, f"String must be one of {LONG_RUNNING}, {MICRO_BATCH}")
        schedule = config.get(SCHEDULE) or None
        if mode == LONG_RUNNING:
            if schedule not in (None, CONTINUOUS):
                raise ConfigError(SCHEDULE, schedule, f"only connectors with {MODE}={MICRO_BATCH} run by a schedule")
            schedule = CONTINUOUS
        return cls(
            mode=mode,
            schedule=schedule,
            retries=_count(RETRIES, config.get(RETRIES)),
            owner=config.get(OWNER) or "airflow",
            tags=tuple(tag.strip() for tag in config.get(TAGS, "").split(",") if tag.strip()),
        )


def inlined(config: Mapping[str, str]) -> dict[str, str]:
    """Return the part of a config that its generated DAG depends on."""
    return {key: config[key] for key in _INLINED if key in config}


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
