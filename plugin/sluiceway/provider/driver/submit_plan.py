"""Plans the spark-submit of a driver: settings, files, environment and arguments, which depend on where the driver runs.

Settings that nobody has given are chosen here, because only now the Spark connection is known.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sluiceway.config.environment import HANDED_OVER
from sluiceway.config.properties import read_properties
from sluiceway.provider.compat import AirflowFailException
from sluiceway.provider.driver.cluster_conf import CORES, CORES_MAX, cluster_conf, uploads_spark_jars
from sluiceway.provider.driver.kubernetes import IMAGE_APPLICATION, NAMESPACE, POD_NAME, UPLOAD_PATH, driver_pod_name
from sluiceway.provider.driver.spark_connection import SparkConnection
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.driver.submit_command import submit_command
from sluiceway.provider.driver.submit_options import SubmitOptions
from sluiceway.spark.elastic import INSTANCES
from sluiceway.spark.jvm_options import folder_variables

WAIT_ON_YARN = "spark.yarn.submit.waitAppCompletion"
WAIT_ON_KUBERNETES = "spark.kubernetes.submission.waitAppCompletion"

YARN_VARIABLE, _POD_VARIABLE = "spark.yarn.appMasterEnv.{}", "spark.kubernetes.driverEnv.{}"
_VARIABLES = (YARN_VARIABLE.format(""), _POD_VARIABLE.format(""))
_DEFAULTS = "spark-defaults.conf"
_FIND_HOME = "find_spark_home.py"


@dataclass(frozen=True, slots=True)
class SubmitPlan:
    """One spark-submit, before the values from Airflow are added."""

    connection: SparkConnection
    options: SubmitOptions
    conf: Mapping[str, Any]
    environment: Mapping[str, str] = field(repr=False)
    """Variables for spark-submit's own process, over those of this process."""
    handed_over: str | None = field(repr=False)
    """The values from Airflow, for a driver in cluster mode. In client mode they are in ``environment``."""
    arguments: Sequence[str]
    private: frozenset[str] = frozenset()
    """The keys in ``conf`` with values of users, which may be secret: no command line has them."""
    defaults: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The settings that Spark would read from a file of its own, or from the user's properties file."""
    image_application: str | None = None
    """The application's path in the image of a pod, which cannot read this machine's."""
    uploads_jars: bool = False
    """Whether spark-submit uploads Spark's jars to the cluster."""

    @property
    def pod(self) -> str:
        """Return the name of the driver's pod on Kubernetes."""
        return str(self.conf.get(POD_NAME, ""))

    @property
    def namespace(self) -> str:
        """Return the namespace of the driver's pod."""
        return self.connection.namespace or "default"

    def command(self, application: str) -> list[str]:
        """Return the command line that submits an application, the path of a Python file."""
        conf = {key: value for key, value in self.conf.items() if key not in self.private}
        return submit_command(self.connection, self.options, conf, application, self.arguments)

    def with_folder(self, folder: Path) -> SubmitPlan:
        """Return the plan of a driver on this machine whose JVM has its temporary files in a folder."""
        variables = folder_variables(folder, {**os.environ, **self.environment}, {**self.defaults, **self.conf})
        return replace(self, environment={**self.environment, **variables})

    def detached(self) -> SubmitPlan:
        """Return the plan of a spark-submit that ends once the cluster manager has accepted the driver.

        Raises:
            AirflowFailException: the settings say otherwise.
        """
        key = WAIT_ON_YARN if self.connection.is_yarn else WAIT_ON_KUBERNETES if self.connection.is_kubernetes else None
        if key is None:
            return self
        if str(self.conf.get(key, "false")).strip().lower() != "false":
            raise AirflowFailException(
                f"{key}=true keeps spark-submit running until the driver's end, but the task must know the driver before. Remove "
                "the setting, or set durable=False and deferrable=False."
            )
        return replace(self, conf={**self.conf, key: "false"})


def plan_submission(
    submission: Submission, connection: SparkConnection, options: SubmitOptions, explicit: Mapping[Any, Any] | None
) -> SubmitPlan:
    """Return the plan of a driver's spark-submit.

    Args:
        submission: the driver.
        connection: where it runs.
        options: the operator's options.
        explicit: the operator's Spark settings.
    """
    conf, defaults, given = _given(submission, connection, options, explicit)
    users = conf.keys()
    client_mode = connection.is_client_mode
    variables = options.env_vars or {}
    # On Kubernetes, a driver's pod has no access to files of this machine, unless spark-submit uploads them.
    in_image = connection.is_kubernetes and not client_mode and UPLOAD_PATH not in given
    own_python = connection.is_local and submission.runs_own_python(variables, given)
    if not own_python and not in_image:
        options = replace(options, py_files=submission.py_files(options.py_files, given))
    if ships_worker := connection.is_yarn and not client_mode:
        options = replace(options, files=submission.files(options.files, given))
    conf = _conf(submission, connection, conf, given, own_python=own_python)
    if connection.is_kubernetes and connection.namespace:
        conf = {**conf, NAMESPACE: connection.namespace}
    if client_mode:
        conf = {**submission.driver_python(variables, given), **conf}
        environment, handed_over = submission.environment(variables, given), None
    else:
        conf, environment, handed_over = _for_cluster(submission, connection, variables, conf, given)
        connection = replace(connection, namespace=connection.namespace or given.get(NAMESPACE))
    environment = {**submission.jvm_variables(environment, client_mode=client_mode), **environment}
    return SubmitPlan(
        connection=connection,
        options=options,
        conf=conf,
        environment={key: str(value) for key, value in environment.items()},
        handed_over=handed_over,
        arguments=submission.arguments(os.getpid() if client_mode else None, ships_worker=ships_worker),
        image_application=IMAGE_APPLICATION if in_image else None,
        private=frozenset(key for key in conf if key in users or key.startswith(_VARIABLES)),
        defaults=defaults,
        uploads_jars=uploads_spark_jars(connection.master, given),
    )


def _given(
    submission: Submission, connection: SparkConnection, options: SubmitOptions, explicit: Mapping[Any, Any] | None
) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
    """Return the settings of connector and operator, the administrator's, and all with the options'; the last wins."""
    conf = submission.conf(explicit)
    environment = {**os.environ, **{key: str(value) for key, value in (options.env_vars or {}).items()}}
    file = read_spark_defaults(environment, properties_file=options.properties_file, binary=connection.binary)
    sizes = {INSTANCES: options.num_executors, CORES: options.executor_cores, CORES_MAX: options.total_executor_cores}
    settings = {**file, **conf, **{key: value for key, value in sizes.items() if value is not None}}
    return conf, file, {key: str(value) for key, value in settings.items()}


def _conf(
    submission: Submission, connection: SparkConnection, conf: dict[str, Any], given: Mapping[str, str], *, own_python: bool
) -> dict[str, Any]:
    """Return ``conf`` over the defaults for the master."""
    if connection.is_local:
        return submission.local_conf(conf, own_python=own_python)
    defaults = cluster_conf(
        connection.master,
        submission.tasks,
        given,
        client_mode=connection.is_client_mode,
        data_frames=submission.data_frames,
        java_memory=submission.java_memory,
    )
    return {**(submission.client_conf(defaults) if connection.is_client_mode else defaults), **conf}


def _for_cluster(
    submission: Submission,
    connection: SparkConnection,
    variables: Mapping[str, Any],
    conf: dict[str, Any],
    given: Mapping[str, str],
) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """Return the settings of a driver in cluster mode, spark-submit's environment, and the values from Airflow."""
    own = {key: value for key, value in variables.items() if key != HANDED_OVER}
    handed_over = str(variables[HANDED_OVER]) if HANDED_OVER in variables else None
    if connection.is_kubernetes:
        # The pod is named here, because its name in spark-submit's log depends on Spark's version.
        conf = {**conf, POD_NAME: given.get(POD_NAME) or driver_pod_name(submission.name)}
        return {**conf, **{_POD_VARIABLE.format(key): value for key, value in own.items()}}, {}, handed_over
    if connection.is_yarn:  # variables such as HADOOP_CONF_DIR are spark-submit's too
        return {**conf, **{YARN_VARIABLE.format(key): value for key, value in own.items()}}, own, handed_over
    if handed_over is not None:
        raise AirflowFailException(
            f"Connector {submission.connector}: a standalone Spark master passes no environment to a driver in cluster "
            "mode, so kafka_conn_id and ${airflow:...} do not work there. Set deploy-mode=client in the Spark connection."
        )
    if own:
        raise AirflowFailException(
            f"Connector {submission.connector}: a standalone Spark master passes no environment to a driver in cluster mode. "
            "Remove env_vars, or set deploy-mode=client in the Spark connection."
        )
    return conf, {}, None


def read_spark_defaults(
    environment: Mapping[str, str], *, properties_file: str | None = None, binary: str = "spark-submit"
) -> dict[str, str]:
    """Return the ``spark.*`` settings that spark-submit reads from a file; empty if there is none.

    Raises ConfigError if the file cannot be read: spark-submit would fail, too.

    Args:
        environment: spark-submit's environment variables.
        properties_file: ``--properties-file``, in whose presence Spark ignores spark-defaults.conf.
        binary: spark-submit's name or path, by which Spark's folder is found without ``SPARK_HOME``.
    """
    file = Path(properties_file) if properties_file else _defaults_file(environment, binary)
    if file is None or not file.is_file():
        return {}
    found = read_properties(file)
    return {key: value.strip() for key, value in found.items() if key.startswith("spark.")}


def spark_home(environment: Mapping[str, str], binary: str = "spark-submit") -> Path | None:
    """Return the folder of the Spark that spark-submit uses, found as its own script does; None if it is unknown."""
    if environment.get("SPARK_HOME"):
        return Path(environment["SPARK_HOME"])
    found = shutil.which(binary, path=environment.get("PATH", os.defpath))
    if found is None:
        return None
    folder = Path(found).parent
    if not (folder / _FIND_HOME).exists():
        return folder.parent
    return next(iter(sorted(folder.parent.glob("lib/python*/*-packages/pyspark"))), None)  # pip installed it


def _defaults_file(environment: Mapping[str, str], binary: str) -> Path | None:
    if environment.get("SPARK_CONF_DIR"):
        return Path(environment["SPARK_CONF_DIR"]) / _DEFAULTS
    home = spark_home(environment, binary)
    return home / "conf" / _DEFAULTS if home else None
