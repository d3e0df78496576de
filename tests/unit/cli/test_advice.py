"""Errors of a server as the command line words them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.cli.advice import did_you_mean
from sluiceway.cli.main import main
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import BadRequestError, InvalidConfigError
from sluiceway.herder.validation import validate_config
from sluiceway.rest.client import RestError
from unit.cli.pretend_client import CONFIG, PretendClient, write


def failed(api: PretendClient, capsys: pytest.CaptureFixture[str], error: RestError, *arguments: str) -> str:
    """Return what a command prints if the server refuses to show a status."""
    api.failures = {"status": error}
    main(list(arguments) or ["get", "status", "orders-snk"])
    return capsys.readouterr().err


def test_a_request_is_named_by_the_command_that_makes_it(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    refused = (
        "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified "
        "connector by issuing a 'PUT' request to the '/connectors/a.b c/stop' endpoint"
    )
    assert failed(api, capsys, RestError(400, refused)) == (
        "sluiceway: Connectors must be in the STOPPED state before their offsets can be modified. Run: sluiceway stop a.b c\n"
    )


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("No status found for connector orders-snk", ". Did you mean orders-sink?"),
        ("Connector orders-snk not found", ". Did you mean orders-sink?"),
        ("Connector zzz not found", ". 'sluiceway get connectors' lists the names."),
        ("Unknown connector: orders-snk", ". Did you mean orders-sink?"),
        (
            "Unknown connector: orders-sink-0",
            ". It is a task of connector orders-sink: 'sluiceway restart orders-sink --task 0' restarts it.",
        ),
        ("Unknown task: orders-sink-7", ". 'sluiceway get tasks orders-sink' lists its tasks."),
        ("invalid log level 'DEBG'.", " Use TRACE, DEBUG, INFO, WARN, ERROR, FATAL, or OFF."),
        ("Logger x not found.", ""),
    ],
)
def test_a_misspelt_connector_is_answered_with_the_one_that_is_alike(
    api: PretendClient, capsys: pytest.CaptureFixture[str], message: str, advice: str
) -> None:
    api.answer_connectors = lambda: ["orders-sink", "people"]  # type: ignore[attr-defined]
    assert failed(api, capsys, RestError(404, message)) == f"sluiceway: {message}{advice}\n"


@pytest.mark.parametrize(
    ("name", "alike"),
    [
        ("JdbcSorce", "JdbcSource"),
        ("io.confluent.connect.jdbc.JdbcSinkConnectr", "JdbcSink"),
        ("parquetsnik", "ParquetSink"),
        ("MySqlSource", "MySqlConnector"),
        ("io.debezium.connector.postgresql.PostgresqlConnector", "PostgresConnector"),
        ("MariaDBSink", "MariaDbConnector"),
        ("MokSource", "MockSource"),
        ("FilestreamSink", "FileStreamSink"),
        ("MongoSource", None),
        ("CassandraSink", None),
        ("Zzzzzzz", None),
    ],
)
def test_a_misspelt_class_is_answered_with_the_one_that_is_alike(
    api: PretendClient, capsys: pytest.CaptureFixture[str], name: str, alike: str | None
) -> None:
    with pytest.raises(BadRequestError) as refused:
        validate_config({"connector.class": name}, WorkerConfig.of({}))
    printed = failed(api, capsys, RestError(400, str(refused.value)))
    question = f"Did you mean {alike}? " if alike else ""
    assert f"matches {name}. {question}'sluiceway get plugins' lists the installed connectors. One of your own " in printed


def test_a_misspelt_class_in_a_refused_config_is_answered_with_one_of_its_type_on_the_server(
    api: PretendClient, capsys: pytest.CaptureFixture[str]
) -> None:
    plugins = [{"class": "a.MaskField$Value", "type": "transformation"}, {"class": "a.MaskFieldConverter", "type": "converter"}]
    api.answer_plugins = lambda **_: plugins  # type: ignore[method-assign]
    errors = [
        f"Invalid value {name} for configuration {key}: Class {name} could not be found."
        for key, name in (("key.converter", "MaskFild"), ("transforms.x.type", "MaskFild"), ("predicates.x.type", "MaskFild"))
    ]
    assert failed(api, capsys, RestError(400, str(InvalidConfigError(errors)))).splitlines()[1:] == [
        f"{errors[0]} Did you mean MaskFieldConverter?",
        f"{errors[1]} Did you mean a.MaskField$Value?",
        errors[2],
    ]
    api.answer_plugins = lambda **_: []  # type: ignore[method-assign]
    assert "Did you mean" not in failed(api, capsys, RestError(400, str(InvalidConfigError(errors))))


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("put_config", ["apply", "-f"]),
        ("validate", ["apply", "--dry-run", "-f"]),
        ("validate", ["validate", "-f"]),
        ("preview", ["preview", "-f"]),
        ("patch_config", ["patch", "orders", "-s", "file=/g"]),
    ],
)
@pytest.mark.parametrize("status", [400, 409])
def test_a_refused_config_is_named_by_its_connector(
    api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str], call: str, arguments: list[str], status: int
) -> None:
    api.configs = {"orders": dict(CONFIG)}
    api.answer_validate = lambda *_: {"configs": []}  # type: ignore[method-assign]
    api.failures = {call: RestError(status, "It is wrong.")}
    file = [write(tmp_path / "c.json", {**CONFIG, "name": "orders", "file": "/g"})] if arguments[-1] == "-f" else []
    main([*arguments, *file])
    assert capsys.readouterr().err == f"sluiceway: {'Connector orders: ' if status == 400 else ''}It is wrong.\n"


def test_an_error_of_two_keys_is_printed_once(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    error = InvalidConfigError(["Set one of a or b", "Set one of a or b", "Set c"])
    assert failed(api, capsys, RestError(400, str(error))) == (
        "sluiceway: Connector configuration is invalid and contains the following 2 error(s):\nSet one of a or b\nSet c\n"
    )


def test_names_are_alike_whatever_their_case() -> None:
    assert did_you_mean("JDBCSOURCE", ["JdbcSource"]) == "Did you mean JdbcSource?"
    assert did_you_mean("x", ["JdbcSource"]) == ""


def test_apply_and_patch_name_changed_keys_that_nothing_reads(
    api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hint = ["  warning  fil = /g", "           unknown key; did you mean file?"]
    known = [{"definition": {"name": key, "type": "STRING"}, "value": {"name": key, "errors": []}} for key in CONFIG]
    api.answer_validate = lambda *_: {"configs": known}  # type: ignore[method-assign]
    assert main(["apply", "-f", write(tmp_path / "c.json", {**CONFIG, "fil": "/g"})]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line in hint] == hint
    api.configs["a"]["old.unknown"] = "1"
    for more in ([], ["--dry-run"]):
        assert main(["patch", "a", "-s", "fil=/g", *more]) == 0
        printed = capsys.readouterr().out
        assert [line for line in printed.splitlines() if line in hint] == hint
        assert "old.unknown" not in printed
    api.failures = {"validate": RestError(500, "no")}
    assert main(["patch", "a", "-s", "fil=/g"]) == 0
    assert api.calls[-1][0] == "patch_config"


@pytest.mark.parametrize(
    ("end", "refused", "calls"),
    [
        (9, "Offset 10 is beyond the end of t:0, which is 9.", 0),
        (10, "", 1),
        (RestError(404, "Connector a reads topics or partitions that do not exist: t:0."), "do not exist: t:0.", 0),
        (RestError(400, "Connector a does not read topic t."), "does not read topic t.", 0),
        (RestError(404, "HTTP 404 Not Found"), "", 1),
    ],
)
def test_an_offset_beyond_the_end_or_of_an_unknown_topic_is_refused(
    api: PretendClient, capsys: pytest.CaptureFixture[str], end: object, refused: str, calls: int
) -> None:
    if isinstance(end, RestError):
        api.failures = {"find_offsets": end}
    found = {"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": {"kafka_offset": end}}
    api.answer_find_offsets = lambda _name: [found]  # type: ignore[method-assign]
    assert (main(["offsets", "set", "a", "t:0", "10"]) == 0) == (calls == 1)
    assert refused in capsys.readouterr().err
    assert len(api.calls) == calls


def test_settings_for_a_worker_file_that_does_not_exist_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "airflow", str(tmp_path / "none.properties")]) != 0
    assert "none.properties is not a file" in capsys.readouterr().err
