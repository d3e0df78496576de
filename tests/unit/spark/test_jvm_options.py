"""Java options of drivers and executors on clusters, and the folder of a driver's temporary files."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.spark.jvm_options import LIGHT, folder_variables, light_jvms

DRIVER, EXECUTOR, AM = "spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions", "spark.yarn.am.extraJavaOptions"


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({}, {DRIVER, EXECUTOR, AM}),
        ({DRIVER: "-Da=b"}, {EXECUTOR, AM}),
        ({AM: ""}, {DRIVER, EXECUTOR}),
        ({"spark.driver.extraJavaOptions": "-Djava.security.krb5.conf=/etc/krb5.conf"}, {DRIVER, EXECUTOR, AM}),
        ({"spark.driver.extraJavaOptions": "-XX:+UseG1GC"}, {EXECUTOR, AM}),
        ({"spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=4"}, {DRIVER, AM}),
    ],
)
def test_jvms_are_light_unless_their_options_are_given(given: dict[str, str], chosen: set[str]) -> None:
    assert light_jvms(given, yarn_client=True) == dict.fromkeys(chosen, LIGHT)
    assert light_jvms(given, yarn_client=False) == dict.fromkeys(chosen - {AM}, LIGHT)


FOLDER = '"-Djava.io.tmpdir=/a b"'


@pytest.mark.parametrize(
    ("environment", "conf", "chosen"),
    [
        ({}, {}, {"SPARK_SUBMIT_OPTS": FOLDER, "SPARK_LOCAL_DIRS": "/a b"}),
        ({"SPARK_SUBMIT_OPTS": "-Da=b"}, {}, {"SPARK_SUBMIT_OPTS": f"-Da=b {FOLDER}", "SPARK_LOCAL_DIRS": "/a b"}),
        ({"SPARK_SUBMIT_OPTS": "-Djava.io.tmpdir=/own"}, {}, {"SPARK_LOCAL_DIRS": "/a b"}),
        ({"SPARK_LOCAL_DIRS": "/own"}, {}, {"SPARK_SUBMIT_OPTS": FOLDER}),
        ({}, {"spark.local.dir": "/own"}, {"SPARK_SUBMIT_OPTS": FOLDER}),
    ],
)
def test_a_jvms_temporary_files_are_in_a_folder_unless_another_is_given(
    environment: dict[str, str], conf: dict[str, str], chosen: dict[str, str]
) -> None:
    assert folder_variables(Path("/a b"), environment, conf) == chosen
