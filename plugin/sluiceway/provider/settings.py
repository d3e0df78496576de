"""Reads the section ``[sluiceway]`` of Airflow's configuration, and prints the settings that an Airflow needs."""

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
BUNDLE_CLASS = "sluiceway.provider.bundle.ConnectorDagBundle"
DEFAULT_BUNDLE = "connectors"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of the section; the default is in the form of Airflow's configuration file."""

    name: str
    default: str
    type: str
    description: str


OPTIONS = (
    Option(
        "worker_properties",
        "",
        "string",
        "Path of the worker's .properties file (bootstrap.servers, group.id, the internal topics, converters). The API "
        "server, the DAG processor, the triggerer and every Airflow worker read it, so each needs it at this path.",
    ),
    Option(
        "spark_conn_id",
        "spark_default",
        "string",
        "Airflow connection of the Spark cluster that runs the connectors. If it does not exist, Spark runs in local mode.",
    ),
    Option(
        "bundle_name",
        DEFAULT_BUNDLE,
        "string",
        "Name of the connector DAG bundle in [dag_processor] dag_bundle_config_list.",
    ),
    Option(
        "mirror_enabled",
        "True",
        "boolean",
        "Whether the API server keeps the DAGs' paused flags and the connectors' target states equal (pause sync).",
    ),
    Option("mirror_interval", "0.5", "float", "Seconds between two reads of the DAGs' paused flags by the API server."),
    Option("pause_poll_interval", "1.0", "float", "Seconds between two reads of the DAG's paused flag by a running task."),
    Option(
        "pause_linger",
        "20.0",
        "float",
        "Seconds that a task keeps its slot after a pause has drained its driver. A resume within that time starts the driver "
        "immediately; a later one waits for Airflow to start the task again. 0 releases the slot immediately.",
    ),
    Option(
        "drain_timeout",
        "15.0",
        "float",
        "Seconds that a driver may take to drain after its connector is paused. Then the task sends SIGTERM, and after the same "
        "time again SIGKILL.",
    ),
    Option("progress_interval", "30.0", "float", "Seconds between two progress lines in the log of a connector's task."),
    Option("sensor_interval", "5.0", "float", "Seconds between two polls of Kafka for a deferred task."),
    Option(
        "preview_enabled",
        "True",
        "boolean",
        "Whether who may run a connector may preview it. A preview connects to other systems from the API server's machine, in a "
        "process without Airflow's settings and secrets.",
    ),
    Option(
        "callbacks",
        "",
        "string",
        "Python modules, separated by commas, whose functions a connector's config may name as callbacks "
        "(airflow.on.failure.callback and similar keys). Empty: no callbacks, because whoever can change a connector could call "
        "any function.",
    ),
    Option(
        "spark_ui_url",
        "",
        "string",
        "Address of the Spark master's UI or history server for browsers: the target of a task's link 'Spark UI' while the "
        "application's own UI is unknown.",
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
    preview_enabled: bool = True
    callbacks: tuple[str, ...] = ()
    spark_ui_url: str = ""
    settle_time: float = 10.0
    """Until when the scheduler knows that a task has released its slot, derived from Airflow's own settings."""

    @classmethod
    def parse(cls, values: Mapping[str, str]) -> Settings:
        """Return the settings of a section; missing or empty options have their defaults. Raises ConfigError."""
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
            preview_enabled=_boolean("preview_enabled", texts["preview_enabled"]),
            callbacks=tuple(parse_list(texts["callbacks"])),
            spark_ui_url=texts["spark_ui_url"],
        )

    def worker_file(self, override: str | Path | None = None) -> Path:
        """Return the path of the worker's properties file; raises ConfigError if none is configured."""
        path = Path(override) if override else self.worker_properties
        if path is None:
            raise ConfigError(
                f"Airflow's configuration has no path of the worker's properties file. Set [{SECTION}] worker_properties "
                f"(AIRFLOW__{SECTION.upper()}__WORKER_PROPERTIES)."
            )
        return path.absolute()

    def worker(self, override: str | Path | None = None, more: Mapping[str, str] | None = None) -> WorkerConfig:
        """Read the worker's properties file; raises ConfigError if it is not configured, missing or invalid.

        ``more`` are properties that override those in the file.
        """
        return WorkerConfig.of({**read_properties(self.worker_file(override)), **(more or {})})


def read_settings() -> Settings:
    """Return the settings of this Airflow process; raises ConfigError. Works in any Airflow component."""
    from airflow.configuration import conf

    settings = Settings.parse({option.name: conf.get(SECTION, option.name, fallback=option.default) for option in OPTIONS})
    # A supervisor may notice its task's end only at the next heartbeat, and the scheduler reads that at its next loop.
    return replace(settings, settle_time=conf.getfloat("workers", "min_heartbeat_interval", fallback=5.0) + _SCHEDULER_SECONDS)


def airflow_settings(
    worker_file: Path | None = None, *, bundle_name: str = DEFAULT_BUNDLE, dags_folder: bool = True
) -> dict[str, str]:
    """Return the environment variables that an Airflow needs to run connectors. No I/O.

    The bundle list replaces Airflow's own list, so it includes the DAGs folder unless ``dags_folder`` is False.
    """
    bundles: list[dict[str, object]] = []
    if dags_folder:
        bundles.append({"name": "dags-folder", "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle", "kwargs": {}})
    bundles.append({"name": bundle_name, "classpath": BUNDLE_CLASS, "kwargs": {"refresh_interval": 30}})
    settings = {
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles),
        # A changed connector shows after the bundle's next refresh; by default Airflow checks every 5 s whether one is due.
        "AIRFLOW__DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "1",
        # Changed files are parsed at once. With the default of 30 s, 1,000 connectors' files need a core and more.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300",
        # With the defaults, an outage of the API server of about 15 s kills every long-running task.
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
