"""docker/compose.yaml, checked without a Docker engine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from airflow.cli.cli_config import GroupCommand, core_commands
from airflow.configuration import retrieve_configuration_description
from airflow.models.connection import Connection
from airflow.providers_manager import ProvidersManager
from airflow.sdk.definitions.connection import Connection as SdkConnection
from cryptography.fernet import Fernet

from sluiceway.cli.main import parser
from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.config.worker_keys import unknown_keys
from sluiceway.java_runtime import find_java
from sluiceway.provider.settings import OPTIONS, SECTION, airflow_settings
from sluiceway.stack.broker import KAFKA_VERSION
from support.clusters.standalone import spark_home
from support.docker_files import DOCKER, ROOT, dockerfile, environment

AIRFLOW = [
    "airflow-init",
    "airflow-api-server",
    "airflow-scheduler",
    "airflow-dag-processor",
    "airflow-triggerer",
    "connect-rest",
]
BUILT = [*AIRFLOW, "spark-master", "spark-worker"]


def _constraints() -> dict[str, str]:
    lines = [line.partition(";")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines()]
    return dict(line.lower().split("==") for line in lines if "==" in line)


def test_the_file_is_valid_by_the_compose_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(DOCKER / "compose.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_variable_has_a_default_and_every_default_is_used() -> None:
    used = set(re.findall(r"(?<!\$)\$\{(\w+)\}", (DOCKER / "compose.yaml").read_text()))
    assert used == set(environment())


def test_services_depend_only_on_conditions_that_can_become_true(services: dict[str, Any]) -> None:
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[other], (name, other)
            else:
                assert how["condition"] == "service_completed_successfully"
                assert services[other]["restart"] == "no", (name, other)


def test_every_long_running_service_except_scaled_workers_has_a_health_check(services: dict[str, Any]) -> None:
    assert {name for name, service in services.items() if "healthcheck" not in service} == {"spark-worker", "airflow-init"}


def test_workers_have_no_fixed_port_or_name_so_they_can_be_scaled(services: dict[str, Any]) -> None:
    assert not {"ports", "hostname", "container_name"} & set(services["spark-worker"])


def test_ports_listen_on_this_machine_only_and_do_not_collide(services: dict[str, Any]) -> None:
    ports = [port.split(":") for service in services.values() for port in service.get("ports", ())]
    assert {port[0] for port in ports} == {"127.0.0.1"}
    assert len({port[1] for port in ports}) == len(ports)
    assert all(int(number) < 65536 for port in ports for number in port[1:])


def test_every_mounted_path_exists_and_every_volume_is_declared(compose: dict[str, Any], services: dict[str, Any]) -> None:
    named: set[str] = set()
    for service in services.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (DOCKER / source).exists(), source
            else:
                named.add(source)
    assert named == set(compose["volumes"])


def test_the_image_creates_each_volumes_folder_for_the_user_that_writes_to_it(services: dict[str, Any]) -> None:
    made = " ".join(each.arguments for each in dockerfile() if each.name == "RUN")
    owned = re.findall(r"chown -R airflow:0 (\S+)", made)
    for name in BUILT:
        for volume in services[name].get("volumes", ()):
            source, target = volume.split(":")[:2]
            if not source.startswith("."):
                assert re.search(rf"mkdir -p [^&]*{target}\b", made), target
                assert any(Path(target).is_relative_to(folder) for folder in owned), target


def test_builds_use_stages_and_arguments_of_the_dockerfile(services: dict[str, Any]) -> None:
    instructions = dockerfile()
    stages = {each.stage for each in instructions}
    arguments = {each.arguments.split("=")[0] for each in instructions if each.name == "ARG"}
    for name in BUILT:
        build = services[name]["build"]
        assert (DOCKER / build["context"]).resolve() == ROOT
        assert (DOCKER / build["context"] / build["dockerfile"]).resolve() == DOCKER / "Dockerfile"
        assert build["target"] in stages
        assert set(build["args"]) <= arguments
    assert {services[name]["build"]["target"] for name in AIRFLOW} == {"airflow"}


def test_airflows_commands_exist(services: dict[str, Any]) -> None:
    known = {command.name: command for command in core_commands}
    seen = []
    for name in AIRFLOW:
        program, *words = services[name]["command"]
        if program == "airflow":
            seen.append(words[0])
            command = known[words[0]]
            if len(words) > 1:
                assert isinstance(command, GroupCommand)
                assert words[1] in {each.name for each in command.subcommands}
    assert sorted(seen) == ["api-server", "dag-processor", "db", "scheduler", "triggerer"]


def test_the_rest_services_command_exists(services: dict[str, Any]) -> None:
    program, *words = services["connect-rest"]["command"]
    assert program == "sluiceway"
    assert parser().parse_args(words).run is not None


def test_sparks_commands_exist(services: dict[str, Any]) -> None:
    [jar] = (spark_home() / "jars").glob("spark-core_*.jar")
    with zipfile.ZipFile(jar) as archive:
        classes = set(archive.namelist())
    for name in ("spark-master", "spark-worker"):
        program, main, *_ = services[name]["command"]
        assert (Path(sys.executable).parent / program).exists()
        assert main.replace(".", "/") + ".class" in classes


@pytest.mark.parametrize("name", ["spark-master", "spark-worker"])
def test_sparks_options_exist(services: dict[str, Any], name: str) -> None:
    """Compare with the options that Spark's own help lists."""
    program, main, *words = services[name]["command"]
    command = [str(Path(sys.executable).parent / program), main, "--help"]
    given = {**os.environ, "SPARK_HOME": str(spark_home()), "JAVA_HOME": str(find_java().home)}
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=60, check=False)
    usage = done.stdout + done.stderr
    for word in words:
        assert not word.startswith("--") or re.search(rf"{word}\b", usage), word


def _airflow_options() -> set[str]:
    sections = retrieve_configuration_description(include_providers=False)
    for _provider, config in ProvidersManager().provider_configs:
        sections |= config
    return {f"AIRFLOW__{section}__{option}".upper() for section, each in sections.items() for option in each["options"]}


def test_every_airflow_variable_is_an_option_of_airflow(services: dict[str, Any]) -> None:
    options = _airflow_options()
    assert f"AIRFLOW__{SECTION}__{OPTIONS[0].name}".upper() in options
    keys = {key for key in services["airflow-scheduler"]["environment"] if key.startswith("AIRFLOW__")}
    assert keys - options == set()


def test_airflow_has_the_settings_that_sluiceway_config_airflow_prints(services: dict[str, Any]) -> None:
    variables = services["airflow-scheduler"]["environment"]
    for key, value in airflow_settings(Path("/etc/sluiceway/worker.properties")).items():
        assert variables[key] == value, key


def test_all_of_airflows_components_share_one_environment(services: dict[str, Any]) -> None:
    assert all(services[name]["environment"] == services["airflow-init"]["environment"] for name in AIRFLOW)


def test_secrets_have_the_form_that_airflow_requires(services: dict[str, Any]) -> None:
    variables = services["airflow-scheduler"]["environment"]
    Fernet(variables["AIRFLOW__CORE__FERNET_KEY"])
    assert len(variables["AIRFLOW__API_AUTH__JWT_SECRET"]) >= 64
    users = {user.split(":")[0] for user in variables["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"].split(",")}
    assert set(json.loads((DOCKER / "config" / "passwords.json").read_text())) == users


def test_connections_name_services_and_ports_that_exist(services: dict[str, Any]) -> None:
    variables = services["airflow-scheduler"]["environment"]
    spark = SdkConnection.from_json(variables["AIRFLOW_CONN_SPARK_DEFAULT"])
    assert f"{spark.host}:{spark.port}" == services["spark-worker"]["command"][-1]
    connect = Connection.from_json(variables["AIRFLOW_CONN_KAFKA_CONNECT_DEFAULT"])
    assert connect.host == "http://connect-rest:8083"
    assert connect.extra_dejson["bootstrap.servers"] == "kafka:9092"
    database = variables["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
    login = services["airflow-db"]["environment"]
    assert database.endswith(f"://airflow:{login['POSTGRES_PASSWORD']}@airflow-db/{login['POSTGRES_DB']}")


def test_the_worker_file_is_valid_and_names_the_broker(services: dict[str, Any]) -> None:
    properties = read_properties(DOCKER / "config" / "worker.properties")
    assert unknown_keys(properties) == {}
    worker = WorkerConfig.of(properties)
    listeners = services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    assert f"INTERNAL://{worker.bootstrap_servers}" in listeners
    published = services["connect-rest"]["ports"][0].rpartition(":")[2]
    assert worker.text("listeners").endswith(f":{published}")


def test_sparks_defaults_leave_cores_for_several_connectors(services: dict[str, Any]) -> None:
    assert services["airflow-scheduler"]["environment"]["SPARK_CONF_DIR"] == "/etc/sluiceway"
    lines = (DOCKER / "config" / "spark-defaults.conf").read_text().splitlines()
    defaults = dict(line.split() for line in lines if line and not line.startswith("#"))
    assert int(defaults["spark.cores.max"]) * 2 <= int(environment()["SPARK_WORKER_CORES"])


def test_versions_are_those_that_were_tested_together(services: dict[str, Any]) -> None:
    constraints = _constraints()
    assert constraints["pyspark"] == constraints["pyspark-client"]
    assert services["kafka"]["image"] == f"apache/kafka:{KAFKA_VERSION}"
    python = environment()["PYTHON_VERSION"]
    assert f"Python {python}," in (ROOT / "README.md").read_text()
    arguments = [each.arguments for each in dockerfile() if each.name == "ARG"]
    assert arguments == [f"PYTHON_VERSION={python}", "PYTHON_VERSION"]  # the stage's takes the first one's value


def test_the_brokers_settings_name_each_listener_once(services: dict[str, Any]) -> None:
    variables = services["kafka"]["environment"]
    listeners = {each.split("://")[0]: each.split("://")[1] for each in variables["KAFKA_LISTENERS"].split(",")}
    advertised = dict(each.split("://") for each in variables["KAFKA_ADVERTISED_LISTENERS"].split(","))
    protocols = dict(each.split(":") for each in variables["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(","))
    assert set(listeners) == set(protocols) == {*advertised, variables["KAFKA_CONTROLLER_LISTENER_NAMES"]}
    assert variables["KAFKA_INTER_BROKER_LISTENER_NAME"] in advertised
    # Clients on this machine must be sent to the published port.
    published = services["kafka"]["ports"][0].split(":")
    assert advertised["HOST"] == f"localhost:{published[1]}"
    assert listeners["HOST"] == f":{published[2]}"


def test_the_readme_names_every_port_and_user(services: dict[str, Any]) -> None:
    readme = (DOCKER / "README.md").read_text()
    for service in services.values():
        for port in service.get("ports", ()):
            assert port.split(":")[1] in readme, port
    for user, password in json.loads((DOCKER / "config" / "passwords.json").read_text()).items():
        assert f"`{user}` / `{password}`" in readme
