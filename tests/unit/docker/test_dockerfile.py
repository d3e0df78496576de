"""docker/Dockerfile and the build context that it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fnmatch import fnmatch
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

from sluiceway.provider.driver.kubernetes import IMAGE_APPLICATION
from sluiceway.spark.python_archive import REQUIREMENTS
from support.docker_files import DOCKER, ROOT, dockerfile


def test_hadolint_finds_no_problem() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([str(hadolint), str(DOCKER / "Dockerfile")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_both_images_have_the_same_base() -> None:
    bases = {each.stage: each.arguments.split()[0] for each in dockerfile() if each.name == "FROM"}
    assert bases["spark"] == bases["airflow"] == "base"
    assert bases["base"] == bases["wheel"] == "python:${PYTHON_VERSION}-slim-bookworm"


def test_nothing_runs_as_root() -> None:
    for stage in ("spark", "airflow"):
        assert [each.arguments for each in dockerfile() if each.stage == stage and each.name == "USER"] == ["50000:0"]


def test_copied_files_exist_and_are_part_of_the_build_context() -> None:
    allowed = [line[1:] for line in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")]
    for each in dockerfile():
        if each.name != "COPY" or each.arguments.startswith("--from"):
            continue
        source = each.arguments.split()[0]
        assert (ROOT / source).exists(), source
        assert source == "." or any(Path(source).is_relative_to(each) for each in allowed), source


def test_the_sources_of_the_wheel_are_part_of_the_build_context() -> None:
    allowed = [line[1:] for line in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")]
    for path in allowed:
        assert (ROOT / path).exists(), path
    needed = ["pyproject.toml", "setup.cfg", "README.md", "LICENSE", "plugin", "operators", "sensors", "dags"]
    assert [path for path in needed if not any(fnmatch(path, pattern) for pattern in allowed)] == []


def test_links_in_the_source_root_lead_to_folders_of_the_build_context() -> None:
    """Docker copies links as links, so the folders they point to must be copied too."""
    allowed = {line[1:] for line in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")}
    links = {
        path.name: path.resolve().relative_to(ROOT) for path in (ROOT / "plugin" / "sluiceway").iterdir() if path.is_symlink()
    }
    assert {name: str(target) for name, target in links.items()} == {name: name for name in ("operators", "sensors", "dags")}
    assert set(links) <= allowed


def test_the_image_of_executors_has_no_airflow() -> None:
    [install] = [each.arguments for each in dockerfile() if each.stage == "spark" and each.name == "RUN"]
    assert install.endswith('.whl)[spark]"')


def test_packages_packed_for_executors_are_requirements_of_the_package_without_extras() -> None:
    ours = {each.name for text in requires("sluiceway") or () if (each := Requirement(text)).marker is None}
    assert set(REQUIREMENTS) <= ours
    assert not ours & {"apache-airflow", "fastapi", "pyspark", "uvicorn"}


def test_the_image_for_kubernetes_has_the_files_that_spark_and_the_operators_expect() -> None:
    copied = {each.arguments.split()[-1] for each in dockerfile() if each.stage == "spark" and each.name == "COPY"}
    [entrypoint] = [json.loads(each.arguments) for each in dockerfile() if each.name == "ENTRYPOINT"]
    assert {IMAGE_APPLICATION.removeprefix("local://"), "/opt/decom.sh", *entrypoint} <= copied
    for script in (DOCKER / "spark").glob("*.sh"):
        assert os.access(script, os.X_OK), script
        subprocess.run(["sh", "-n", str(script)], check=True)


def test_the_entrypoint_starts_a_driver_and_an_executor_as_spark_asks_for(tmp_path: Path) -> None:
    said = tmp_path / "said"
    for name in ("home/bin/spark-submit", "java/bin/java"):
        program = tmp_path / name
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{said}\n')
        program.chmod(0o755)
    given = {"PATH": os.environ["PATH"], "SPARK_HOME": f"{tmp_path}/home", "JAVA_HOME": f"{tmp_path}/java"}

    def run(*arguments: str, **variables: str) -> list[str]:
        subprocess.run([str(DOCKER / "spark" / "entrypoint.sh"), *arguments], env={**given, **variables}, check=True)
        return said.read_text().splitlines()

    driver = run("driver", "--properties-file", "a b", SPARK_DRIVER_BIND_ADDRESS="10.0.0.1")
    assert driver[:4] == ["--deploy-mode", "client", "--conf", "spark.driver.bindAddress=10.0.0.1"]
    assert driver[-2:] == ["--properties-file", "a b"]
    names = ("DRIVER_URL", "EXECUTOR_ID", "EXECUTOR_CORES", "APPLICATION_ID", "EXECUTOR_POD_IP", "EXECUTOR_POD_NAME")
    values = {f"SPARK_{name}": name.lower() for name in (*names, "RESOURCE_PROFILE_ID")}
    options = {"SPARK_JAVA_OPT_0": "-Da=b c", "SPARK_JAVA_OPT_1": "-XX:+A", "SPARK_EXECUTOR_MEMORY": "1g"}
    executor = run("executor", **values, **options)
    assert executor[:4] == ["-Da=b c", "-XX:+A", "-Xms1g", "-Xmx1g"]
    assert executor[executor.index("--podName") + 1] == "executor_pod_name"
    assert executor[executor.index("-cp") + 1].endswith("/home/jars/*")
