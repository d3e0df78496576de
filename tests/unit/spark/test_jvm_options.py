"""Java options of drivers and executors on clusters."""

from __future__ import annotations

import pytest

from sluiceway.spark.jvm_options import LIGHT, light_jvms

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
