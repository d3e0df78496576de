"""The command line of spark-submit: the one that Airflow's own Spark hook builds, and no secret in its log."""

from __future__ import annotations

import os
import re
import time
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sluiceway.provider.driver.spark_connection import SparkConnection
from sluiceway.provider.driver.submit_command import masked, submit_command
from sluiceway.provider.driver.submit_options import SubmitOptions

_TEXT = st.sampled_from(["a", "/b/c.zip,d", "1g", "e f"])
_OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(
            (
                *(
                    "archives",
                    "driver_class_path",
                    "driver_memory",
                    "exclude_packages",
                    "executor_memory",
                    "files",
                    "jars",
                    "keytab",
                ),
                *("name", "packages", "principal", "properties_file", "proxy_user", "py_files", "repositories", "yarn_queue"),
            ),
            _TEXT,
        ),
        **dict.fromkeys(("executor_cores", "num_executors", "total_executor_cores"), st.integers(0, 9)),
        "deploy_mode": st.sampled_from(["client", "cluster"]),
        "spark_binary": st.just("spark3-submit"),
        "verbose": st.booleans(),
    },
)
_EXTRAS = st.fixed_dictionaries(
    {},
    optional={
        "queue": _TEXT,
        "deploy-mode": st.sampled_from(["client", "cluster"]),
        "spark-binary": st.sampled_from(["spark-submit", "spark2-submit", "spark3-submit"]),
        "namespace": _TEXT,
        "principal": _TEXT,
    },
)
# Connections as a form stores them and as Airflow reads them from a URI.
_ADDRESSES = st.sampled_from(
    [
        ("spark", "spark://m", 7077),
        ("spark", "m", 7077),
        ("spark", "spark://m1,m2", 7077),
        ("spark", "local[2]", None),
        ("spark", "yarn", None),
        ("yarn", "", None),
        ("local", "", None),
    ]
)

# Before 5.4, the provider lost the scheme of an address that Airflow has read from a URI.
_reads_uris = tuple(map(int, version("apache-airflow-providers-apache-spark").split(".")[:2])) >= (5, 4)


class _StartedError(Exception):
    """The fake of subprocess.Popen raises it instead of starting a process."""


def _command_of_airflow(connection: Any, conf: dict[str, str], options: dict[str, Any]) -> list[str]:
    seen: list[list[str]] = []

    def start(command: list[str], **kwargs: Any) -> None:
        seen.append(command)
        raise _StartedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkSubmitHook, "get_connection", staticmethod(lambda conn_id: connection))
        patch.setattr("subprocess.Popen", start)
        with pytest.raises(_StartedError):
            SparkSubmitHook(conf=dict(conf), conn_id="s", application_args=["x"], **{"name": "", **options}).submit("app.py")
    return seen[0]


def _parts(command: list[str]) -> tuple[str, set[tuple[str, ...]], list[str]]:
    """Return the program, its options without their order, and the application with its arguments."""
    at = command.index("app.py")
    options: set[tuple[str, ...]] = set()
    words = command[1:at]
    while words:
        count = 1 if words[0] == "--verbose" else 2
        options.add(tuple(words[:count]))
        words = words[count:]
    return command[0], options, command[at:]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(_ADDRESSES, _EXTRAS, _OPTIONS, st.dictionaries(st.sampled_from(["spark.a", "spark.b"]), _TEXT))
def test_connection_and_options_give_the_command_of_airflows_own_hook(
    address: tuple[str, str, int | None], extra: dict[str, str], options: dict[str, Any], conf: dict[str, str]
) -> None:
    assume(_reads_uris or (address[0] == "spark" and address[1] != "m"))
    connection = SimpleNamespace(conn_type=address[0], host=address[1], port=address[2], extra_dejson=extra)
    found = SparkConnection.parse("s", connection, SubmitOptions(**options), conf)
    command = submit_command(found, SubmitOptions(**options), conf, "app.py", ["x"])
    assert _parts(command) == _parts(_command_of_airflow(connection, conf, options))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("--conf spark.my.password=a b", "--conf spark.my.password=****** b"),
        ("--conf a.Secret.b=x=y z", "--conf a.Secret.b=****** z"),
        ("HivePassword='a b' c", "HivePassword='******' c"),
        ('secret="it\'s" c', 'secret="******" c'),
        ("--secret x y", "--secret ****** y"),
        ("a.password= b", "a.password= b"),
        ("-Dx.trustStorePassword=a -Dy=b", "-Dx.trustStorePassword=****** -Dy=b"),
        ("password='never closed x", "password=****** closed x"),
        ("no secret", "no secret"),
        ("nothing here", "nothing here"),
        ("a password=x password=y", "a password=****** password=******"),
    ],
)
def test_values_of_secrets_are_masked(text: str, shown: str) -> None:
    assert masked(text) == shown
    assert masked(text.split(" ")) == shown


@pytest.mark.parametrize(
    "text",
    ["secret" * 40_000, "password=" * 40_000, 'password="a ' * 20_000, "x" * 400_000 + "password=y", 'password="" ' * 20_000],
)
def test_masking_a_long_line_takes_no_more_than_linear_time(text: str) -> None:
    began = time.process_time()
    masked(text[: len(text) // 8])
    short = time.process_time() - began
    began = time.process_time()
    masked(text)
    assert time.process_time() - began < 32 * short + 0.2, "eight times the text may take eight times as long"


def test_a_keytab_in_the_connection_becomes_a_file_that_only_this_user_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    extra = {"keytab": "a2V5\ndGFi\n"}
    connection = SimpleNamespace(conn_type="spark", host="yarn", port=None, extra_dejson=extra)
    keytab = SparkConnection.parse("s", connection, SubmitOptions(), {}).keytab
    assert keytab is not None
    assert Path(keytab).read_bytes() == b"keytab"
    assert os.stat(keytab).st_mode & 0o777 == 0o600  # noqa: PTH116


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"spark-binary": "rm"}, "must be one of spark-submit, spark2-submit, spark3-submit"),
        ({"spark-home": "/opt/spark"}, "on the PATH"),
        ({"rest-port": "x"}, "must be a number"),
        ({"keytab": "!"}, "Base64"),
    ],
)
def test_an_invalid_extra_is_refused_in_a_sentence(extra: dict[str, str], message: str) -> None:
    connection = SimpleNamespace(conn_type="spark", host="yarn", port=None, extra_dejson=extra)
    with pytest.raises(Exception, match=re.escape(message)) as raised:
        SparkConnection.parse("my_spark", connection, SubmitOptions(), {})
    assert "my_spark" in str(raised.value)
