"""The options of spark-submit that an operator sets, under the names of Airflow's SparkSubmitOperator. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from requests.auth import AuthBase


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """What an operator adds to the Spark connection. None is an option that is not given."""

    archives: str | None = None
    deploy_mode: str | None = None
    driver_class_path: str | None = None
    driver_memory: str | None = None
    env_vars: Mapping[str, Any] | None = None
    """Environment variables of the driver. Their values may be secret."""
    exclude_packages: str | None = None
    executor_cores: int | None = None
    executor_memory: str | None = None
    files: str | None = None
    jars: str | None = None
    keytab: str | None = None
    load_spark_defaults: bool = False
    """Whether Spark reads spark-defaults.conf in spite of a properties file."""
    name: str | None = None
    num_executors: int | None = None
    packages: str | None = None
    post_submit_commands: Sequence[str] = field(default_factory=tuple)
    """Commands that run on this machine after the driver's end. Their failure is logged only."""
    principal: str | None = None
    properties_file: str | None = None
    proxy_user: str | None = None
    py_files: str | None = None
    repositories: str | None = None
    spark_binary: str | None = None
    status_poll_interval: float = 1
    """Seconds between two requests for the state of a driver in cluster mode."""
    total_executor_cores: int | None = None
    track_driver_via_k8s_api: bool = False
    """Whether spark-submit ends once the driver's pod exists, and Kubernetes' API is asked for its phase."""
    use_krb5ccache: bool = False
    verbose: bool = False
    yarn_queue: str | None = None
    yarn_rm_auth: AuthBase | None = None
    yarn_track_via_rm_api: bool = False
    """Whether spark-submit ends once YARN has accepted the driver, and the resource manager's REST API is asked for its state."""
