"""Tests of the bundle's files."""

from __future__ import annotations

import ast
import time
from pathlib import Path

from sluiceway.config.application import Applications
from sluiceway.provider.dag_bundle.dag_ids import application_dag_id, stub_file
from sluiceway.provider.dag_bundle.stubs import stub, stubs, write_stubs
from sluiceway.storage.model import ClusterState, ConnectorEntry, TargetState


def _state(**configs: dict[str, str]) -> ClusterState:
    entries = (ConnectorEntry(name, config, application=Applications().application(config)) for name, config in configs.items())
    return ClusterState({entry.name: entry for entry in entries})


def test_a_stub_is_valid_python_for_any_name() -> None:
    name = 'it\'s "quoted" \\ and {braced} größe'
    tree = ast.parse(stub(name, {"connector.class": "X\n}", "topics": "t"}))
    call = next(node for node in ast.walk(tree) if isinstance(node, ast.Call))
    assert [ast.literal_eval(argument) for argument in call.args] == [name, {"connector.class": "X\n}", "topics": "t"}]


def test_airflow_parses_a_stub() -> None:
    text = stub("c", {}).lower()
    assert "airflow" in text
    assert "dag" in text


def test_a_connector_with_a_hand_written_dag_has_no_stub() -> None:
    assert list(stubs(_state(a={"topic": "t"}, b={"topic": "t", "airflow.dag": "mine"}))) == ["connector-a.py"]


def test_dags_of_other_bundles_stay_and_connectors_of_their_names_are_import_errors() -> None:
    state = _state(
        a={"topic": "t", "sluiceway.application": "big"},
        b={"topic": "t", "sluiceway.application": "small"},
        c={"topic": "t", "airflow.dag": "c"},
    )
    big = application_dag_id("big")
    files = stubs(state, {"a": "team", big: "team", "c": "team"})
    assert sorted(files) == sorted(map(stub_file, ("a", "b", big, application_dag_id("small"))))
    for dag in ("a", big):
        assert f"DAG {dag} exists in bundle team" in files[stub_file(dag)]
        assert "connector_dag" not in files[stub_file(dag)]
    assert files[stub_file("b")] == stubs(state)[stub_file("b")]


def test_a_connector_is_no_application() -> None:
    state = ClusterState({name: ConnectorEntry(name, {}, application="x") for name in ("application~x", "a")})
    files = stubs(state)
    assert "application_dag(" in files[stub_file(application_dag_id("x"))]
    [refused] = [text for name, text in files.items() if "reserved" in name]
    assert "Connector application~x: names that begin with application~" in refused


def test_a_name_too_long_for_a_dag_id_gives_an_import_error() -> None:
    files = stubs(ClusterState({"x" * 300: ConnectorEntry("x" * 300, {}), "ok": ConnectorEntry("ok", {})}))
    refused = next(text for name, text in files.items() if "too-long" in name)
    assert "connector-ok.py" in files
    assert "250 characters" in refused
    ast.parse(refused)


def test_stubs_are_written_changed_and_deleted_and_other_files_stay(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("# not ours")
    assert write_stubs(tmp_path, {"connector-a.py": "1", "connector-b.py": "1"}) == ["connector-a.py", "connector-b.py"]
    assert sorted(write_stubs(tmp_path, {"connector-a.py": "2", "connector-c.py": "1"})) == [
        "connector-a.py",
        "connector-b.py",
        "connector-c.py",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["connector-a.py", "connector-c.py", "mine.py"]
    assert (tmp_path / "connector-a.py").read_text() == "2"


def test_an_unchanged_stub_is_not_written_again(tmp_path: Path) -> None:
    write_stubs(tmp_path, {"connector-a.py": "1"})
    before = (tmp_path / "connector-a.py").stat()
    assert write_stubs(tmp_path, {"connector-a.py": "1"}) == []
    assert (tmp_path / "connector-a.py").stat().st_ino == before.st_ino


def test_the_dag_of_a_connector_that_is_created_paused_is_created_paused(tmp_path: Path) -> None:
    started = stubs(ClusterState({"a": ConnectorEntry("a", {"topic": "t"})}))
    paused = stubs(ClusterState({"a": ConnectorEntry("a", {"topic": "t"}, TargetState.STOPPED)}))
    ast.parse(paused["connector-a.py"])
    assert "is_paused_upon_creation=True" in paused["connector-a.py"]
    assert "is_paused_upon_creation" not in started["connector-a.py"]
    assert write_stubs(tmp_path, paused) == ["connector-a.py"]
    assert write_stubs(tmp_path, started) == [], "a pause or resume needs no parse"
    changed = stubs(ClusterState({"a": ConnectorEntry("a", {"airflow.tags": "u"})}))
    assert write_stubs(tmp_path, changed) == ["connector-a.py"]


def test_a_shared_application_has_a_stub_without_the_settings_of_its_connectors() -> None:
    shared = {"sluiceway.application": "small"}
    files = stubs(_state(a={**shared, "spark.x": "1"}, b=shared, c={"spark.x": "9"}))
    assert sorted(files) == ["connector-a.py", "connector-application_x7Esmall.py", "connector-b.py", "connector-c.py"]
    call = next(node for node in ast.walk(ast.parse(files["connector-application_x7Esmall.py"])) if isinstance(node, ast.Call))
    assert [ast.literal_eval(argument) for argument in call.args] == ["small"]
    assert "application='small'" in files["connector-a.py"], "the DAG's page names the application"
    assert "application" not in files["connector-c.py"]


def test_a_stub_has_only_what_its_dag_needs() -> None:
    config = {
        "connector.class": "X",
        "topics": "t",
        "airflow.tags": "a",
        "db.password": "hunter2",
        "azblob.account.key": "hunter2",
    }
    config |= {"declared.by.its.type.only": "hunter2", "db.url": "jdbc:x://u:hunter2@h/d", "airflow.note": "http://u:hunter2@h"}
    text = stub("c", config)
    assert "hunter2" not in text
    call = next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    kept = {"connector.class": "X", "topics": "t", "airflow.tags": "a", "airflow.note": "http://[hidden]@h"}
    assert ast.literal_eval(call.args[1]) == kept


def test_airflow_parses_an_application_before_the_connectors_that_wait_for_it(tmp_path: Path) -> None:
    files = {"connector-application_x7Emany.py": "1", "connector-application.py": "1", "connector-b.py": "1"}
    write_stubs(tmp_path, files)
    newest = sorted(files, key=lambda name: (tmp_path / name).stat().st_mtime)
    assert newest == ["connector-application.py", "connector-b.py", "connector-application_x7Emany.py"]
    ahead = (tmp_path / newest[-1]).stat().st_mtime - time.time()
    assert 5 < ahead <= 10
