"""What the Airflow side is told by Airflow's configuration: section ``[sluiceway]``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sluiceway.config.parsing import parse_list
from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError

SECTION = "sluiceway"
_SCHEDULER_SECONDS = 5.0
BUNDLE_CLASS = "sluiceway.provider.dag_bundle.bundle.ConnectorDagBundle"
DEFAULT_BUNDLE = "connectors"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of the section: its default as text, and what it is for."""

    name: str
    default: str
    type: str
    description: str


OPTIONS = (
    Option(
        "worker_properties",
        "",
        "string",
        "Path of the worker's .properties file (bootstrap.servers, group.id, the internal topics, converters). The file "
        "is read by the API server, the DAG processor and every Airflow worker, so it must be at this path on each.",
    ),
    Option(
        "spark_conn_id",
        "spark_default",
        "string",
        "Airflow connection of the Spark cluster that runs the connectors; without such a connection they run in local mode.",
    ),
    Option(
        "bundle_name",
        DEFAULT_BUNDLE,
        "string",
        "Name of the DAG bundle, as in [dag_processor] dag_bundle_config_list, whose DAGs are made from the config topic.",
    ),
    Option(
        "mirror_enabled",
        "True",
        "boolean",
        "Whether the API server keeps the DAGs' paused flags and the connectors' target states equal.",
    ),
    Option("mirror_interval", "0.5", "float", "Seconds between two looks of the mirror at the DAGs' paused flags."),
    Option("pause_poll_interval", "1.0", "float", "Seconds between two looks of a running task at its DAG's paused flag."),
    Option(
        "pause_linger",
        "20.0",
        "float",
        "Seconds that a task keeps its slot after its driver has drained for a pause: a resume within that time starts the "
        "driver at once, a later one waits for Airflow to start the task again. 0 gives the slot back at once.",
    ),
    Option(
        "drain_timeout",
        "15.0",
        "float",
        "Seconds that a driver may take to drain by itself once its connector is paused, before it is sent SIGTERM, and again "
        "as long after that before it is killed.",
    ),
    Option("progress_interval", "30.0", "float", "Seconds between two lines in a task's log about what its connector moves."),
    Option("sensor_interval", "5.0", "float", "Seconds between two looks at a connector for a task that is deferred."),
    Option(
        "callbacks",
        "",
        "string",
        "Python modules, separated by commas, whose functions connectors may name as callbacks of their DAGs "
        "(airflow.on.failure.callback and the like). Without any, none may, since whoever can change a connector could call "
        "anything.",
    ),
    Option(
        "spark_ui_url",
        "",
        "string",
        "Address of the Spark master's UI or history server as browsers reach it: where the button 'Spark UI' of a "
        "connector's task leads if the application's own UI is not known.",
    ),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The section's values; intervals in seconds."""

    worker_properties: Path | None = None
    spark_conn_id: str = "spark_default"
    bundle_name: str = DEFAULT_BUNDLE
    mirror_enabled: bool = True
    mirror_interval: float = 0.5
    pause_poll_interval: float = 1.0
    pause_linger: float = 20.0
    drain_timeout: float = 15.0
    progress_interval: float = 30.0
    sensor_interval: float = 5.0
    callbacks: tuple[str, ...] = ()
    spark_ui_url: str = ""
    settle_time: float = 10.0
    """How long the scheduler may take to hear that a task has given its slot back, from Airflow's own settings."""

    @classmethod
    def parse(cls, values: Mapping[str, str]) -> Settings:
        """Return the settings in an Airflow section; options that are missing or empty take their defaults."""
        texts = {option.name: values.get(option.name) or option.default for option in OPTIONS}
        return cls(
            worker_properties=Path(texts["worker_properties"]).expanduser() if texts["worker_properties"] else None,
            spark_conn_id=texts["spark_conn_id"],
            bundle_name=texts["bundle_name"],
            mirror_enabled=_boolean("mirror_enabled", texts["mirror_enabled"]),
            mirror_interval=_seconds("mirror_interval", texts["mirror_interval"]),
            pause_poll_interval=_seconds("pause_poll_interval", texts["pause_poll_interval"]),
            pause_linger=_seconds("pause_linger", texts["pause_linger"], least=0.0),
            drain_timeout=_seconds("drain_timeout", texts["drain_timeout"]),
            progress_interval=_seconds("progress_interval", texts["progress_interval"]),
            sensor_interval=_seconds("sensor_interval", texts["sensor_interval"]),
            callbacks=tuple(parse_list(texts["callbacks"])),
            spark_ui_url=texts["spark_ui_url"],
        )

    def worker_file(self, override: str | Path | None = None) -> Path:
        """Return the path of the worker's properties file; raises ConfigError if none is configured."""
        path = Path(override) if override else self.worker_properties
        if path is None:
            raise ConfigError(
                f"Airflow's configuration does not say where the worker's properties file is: set [{SECTION}] worker_properties "
                f"(AIRFLOW__{SECTION.upper()}__WORKER_PROPERTIES)."
            )
        return path.absolute()

    def worker(self, override: str | Path | None = None, more: Mapping[str, str] | None = None) -> WorkerConfig:
        """Read the worker's properties file; raises ConfigError if it is not configured, not there or wrong.

        ``more`` are properties that win over those in the file.
        """
        return WorkerConfig.of({**read_properties(self.worker_file(override)), **(more or {})})


def read_settings() -> Settings:
    """Return the settings of this Airflow process. Runs in any Airflow component; raises ConfigError."""
    from airflow.configuration import conf

    settings = Settings.parse({option.name: conf.get(SECTION, option.name, fallback=option.default) for option in OPTIONS})
    # A task's supervisor may notice its end only when the next heartbeat is due, and the scheduler looks now and then.
    return replace(settings, settle_time=conf.getfloat("workers", "min_heartbeat_interval", fallback=5.0) + _SCHEDULER_SECONDS)


def airflow_settings(
    worker_file: Path | None = None, *, bundle_name: str = DEFAULT_BUNDLE, dags_folder: bool = True
) -> dict[str, str]:
    """Return the environment variables that an Airflow needs to run connectors; pure.

    The bundle list replaces Airflow's own, so it repeats the DAGs folder unless ``dags_folder`` is False.
    """
    bundles: list[dict[str, object]] = []
    if dags_folder:
        bundles.append({"name": "dags-folder", "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle", "kwargs": {}})
    bundles.append({"name": bundle_name, "classpath": BUNDLE_CLASS, "kwargs": {"refresh_interval": 30}})
    settings = {
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles),
        # A change of a connector shows after the bundle's next refresh; the default looks every 5 s.
        "AIRFLOW__DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "1",
        # With the defaults an outage of the API server of some 15 s would kill every long-running task.
        "AIRFLOW__WORKERS__MAX_FAILED_HEARTBEATS": "60",
        f"AIRFLOW__{SECTION.upper()}__WORKER_PROPERTIES": str(worker_file or "/path/to/connect-distributed.properties"),
    }
    if bundle_name != DEFAULT_BUNDLE:
        settings[f"AIRFLOW__{SECTION.upper()}__BUNDLE_NAME"] = bundle_name
    return settings


def _boolean(name: str, text: str) -> bool:
    if text.strip().lower() in ("true", "t", "1", "yes", "on"):
        return True
    if text.strip().lower() in ("false", "f", "0", "no", "off"):
        return False
    raise ConfigError(f"[{SECTION}] {name}", text, "must be True or False")


def _seconds(name: str, text: str, least: float = sys.float_info.min) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not least <= seconds < float("inf"):
        raise ConfigError(f"[{SECTION}] {name}", text, f"must be a number of seconds{', 0 or' if not least else ''} above 0")
    return seconds
