"""The verbs against a REST API of their own: what they ask for, print, and answer to scripts."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluiceway.cli import common
from sluiceway.cli.main import main
from sluiceway.rest.client import ConnectClient, RestError

CONFIG = {"name": "a", "connector.class": "FileStreamSource", "file": "/f", "topic": "t", "db.password": "hunter2"}
STATUS = {
    "name": "a",
    "type": "source",
    "connector": {"state": "RUNNING", "worker_id": "h:1"},
    "tasks": [{"id": 0, "state": "FAILED", "worker_id": "h:1", "trace": "Error: boom\n"}],
}
OFFSETS = [{"partition": {"filename": "/f"}, "offset": {"position": 7}}]
DEFINITION = {
    "name": "file",
    "type": "STRING",
    "required": False,
    "default_value": None,
    "importance": "HIGH",
    "documentation": "D.",
}


class PretendClient:
    """A server's answers; ``calls`` notes what changes something, ``failures`` has what is refused by method."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.failures: dict[str, RestError] = {}
        self.configs: dict[str, dict[str, str]] = {"a": dict(CONFIG)}
        self.errors: list[str] = []
        self.server = "http://s"

    def __enter__(self) -> PretendClient:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if not hasattr(ConnectClient, name):
            raise AttributeError(name)

        def call(*arguments: Any, **named: Any) -> Any:
            if name in self.failures:
                raise self.failures[name]
            answer = getattr(self, f"answer_{name}", None)
            if answer is not None:
                return answer(*arguments)
            self.calls.append((name, *arguments, *named.items()))
            return {"alter_offsets": "altered", "reset_offsets": "reset", "set_logger": ["x", "x.y"]}.get(name)

        return call

    def answer_infos(self) -> Any:
        return {name: {"config": config} for name, config in self.configs.items()}

    def answer_config(self, name: str) -> Any:
        return self.configs[name]

    def answer_status(self, _name: str) -> Any:
        return STATUS

    def answer_statuses(self) -> Any:
        return {name: STATUS | {"name": name} for name in self.configs}

    def answer_tasks(self, _name: str) -> Any:
        return [{"id": {"connector": "a", "task": 0}, "config": {"file": "/f", "db.password": "hunter2"}}]

    def answer_topics(self, _name: str) -> Any:
        return ["t"]

    def answer_offsets(self, _name: str) -> Any:
        return OFFSETS

    def answer_plugins(self) -> Any:
        return [{"class": "x.Y", "type": "source", "version": "1"}]

    def answer_plugin_config(self, _name: str) -> Any:
        return [DEFINITION]

    def answer_loggers(self) -> Any:
        return {"root": {"level": "INFO", "last_modified": None}}

    def answer_logger(self, _name: str) -> Any:
        return {"level": "WARN", "last_modified": 1}

    def answer_validate(self, _plugin: str, config: dict[str, str]) -> Any:
        values = [{"definition": {"name": key, "type": "STRING"}, "value": {"name": key, "errors": []}} for key in config]
        for each in values[:1]:
            each["value"]["errors"] = self.errors
        return {"configs": values}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendClient]:
    client = PretendClient()
    monkeypatch.setattr("sluiceway.rest.client.ConnectClient", lambda *_, **__: client)
    monkeypatch.setenv(common.SERVER_VARIABLE, "http://s")
    return client


def out(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def write(path: Path, *configs: dict[str, str]) -> str:
    path.write_text(json.dumps(list(configs)))
    return str(path)


def test_apply_shows_what_changes_before_it_does_it_and_does_nothing_twice(
    api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed, new = CONFIG | {"topic": "u"}, {"name": "b", "connector.class": "C"}
    assert main(["apply", "-f", write(tmp_path / "f.json", changed, new)]) == 0
    assert out(capsys) == [
        "~ a",
        "  - topic: t",
        "  + topic: u",
        "+ b",
        "  + connector.class: C",
        "  + name: b",
        "Connector a configured",
        "Connector b created",
    ]
    assert api.calls == [("put_config", "a", changed), ("put_config", "b", new)]
    api.calls.clear()
    assert main(["apply", "-f", write(tmp_path / "g.json", CONFIG)]) == 0
    assert (out(capsys), api.calls) == (["Connector a unchanged"], [])


def test_a_dry_run_checks_and_changes_nothing(api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "f.json", {"name": "b", "connector.class": "C"})
    assert main(["apply", "-f", file, "--dry-run"]) == 0
    assert out(capsys)[-2:] == ["b: valid", "Dry run: 1 to create"]
    api.errors = ["too short"]
    assert main(["apply", "-f", file, "--dry-run"]) == 3
    assert "           too short" in out(capsys)
    assert api.calls == []


def test_prune_deletes_what_is_in_no_file(api: PretendClient, tmp_path: Path) -> None:
    file = write(tmp_path / "f.json", {"name": "b", "connector.class": "C"})
    assert main(["apply", "-f", file]) == 0
    assert main(["apply", "-f", file, "--prune"]) == 0
    assert [call[:2] for call in api.calls] == [("put_config", "b"), ("put_config", "b"), ("delete", "a")]


def test_a_new_connectors_initial_state_is_asked_for(api: PretendClient, tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text("name: b\ninitial_state: PAUSED\nconfig: {connector.class: C}\n")
    assert main(["apply", "-f", str(file)]) == 0
    assert api.calls == [("create", "b", {"connector.class": "C", "name": "b"}, "PAUSED")]


def test_diff_tells_a_script_whether_anything_would_change(
    api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", "-f", write(tmp_path / "f.json", CONFIG)]) == 0
    assert main(["diff", "-f", write(tmp_path / "g.json", CONFIG | {"db.password": "hunter3"})]) == 8
    assert out(capsys) == ["~ a", "  - db.password: [hidden]", "  + db.password: [hidden]"]
    assert api.calls == []


@pytest.mark.parametrize(("errors", "code"), [([], 0), (["bad"], 3)])
def test_validate_answers_with_its_findings(
    api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str], errors: list[str], code: int
) -> None:
    api.errors = errors
    file = write(tmp_path / "f.json", CONFIG)
    assert main(["validate", "-f", file]) == code
    assert out(capsys)[0] == ("a: 1 error(s), 0 warning(s)" if errors else "a: valid")
    assert main(["validate", "-f", file, "-o", "json"]) == code
    assert [each["message"] for each in json.loads(capsys.readouterr().out)[0]["errors"]] == errors


def test_patch_shows_and_sends_only_what_changes(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patch", "connector", "a", "-s", "topic=x=y", "--remove", "file"]) == 0
    assert api.calls == [("patch_config", "a", {"topic": "x=y", "file": None})]
    assert out(capsys) == ["~ a", "  - file: /f", "  - topic: t", "  + topic: x=y", "Connector a configured"]
    assert main(["patch", "a", "--set", "topic=z", "--dry-run"]) == 0
    assert main(["patch", "a", "--set", "topic=t"]) == 0
    assert len(api.calls) == 1
    assert main(["patch", "a"]) == 1


@pytest.mark.parametrize(
    ("arguments", "calls"),
    [
        (["pause", "connector", "a", "b"], [("pause", "a"), ("pause", "b")]),
        (["stop", "connector"], [("stop", "connector")]),
        (["restart", "a"], [("restart", "a", ("tasks", False), ("only_failed", False))]),
        (["restart", "a", "--tasks", "--only-failed"], [("restart", "a", ("tasks", True), ("only_failed", True))]),
        (["restart", "a", "--task", "0", "--task", "2"], [("restart_task", "a", 0), ("restart_task", "a", 2)]),
        (["offsets", "reset", "a"], [("reset_offsets", "a")]),
        (
            ["offsets", "set", "a", "my.topic:3", "42"],
            [
                (
                    "alter_offsets",
                    "a",
                    [{"partition": {"kafka_topic": "my.topic", "kafka_partition": 3}, "offset": {"kafka_offset": 42}}],
                )
            ],
        ),
        (
            ["offsets", "set", "a", "t:0", "null"],
            [("alter_offsets", "a", [{"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": None}])],
        ),
        (
            ["offsets", "set", "a", '{"filename": "/f"}', '{"position": 1}'],
            [("alter_offsets", "a", [{"partition": {"filename": "/f"}, "offset": {"position": 1}}])],
        ),
        (["loggers", "set", "x", "debug", "--scope", "cluster"], [("set_logger", "x", "debug", ("cluster", True))]),
    ],
)
def test_each_verb_asks_for_what_it_says(api: PretendClient, arguments: list[str], calls: list[tuple[Any, ...]]) -> None:
    assert main(arguments) == 0
    assert api.calls == calls


def test_offsets_can_be_put_back_from_what_was_shown(
    api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["offsets", "get", "a", "-o", "json"]) == 0
    (tmp_path / "o.json").write_text(capsys.readouterr().out)
    assert main(["offsets", "set", "a", "-f", str(tmp_path / "o.json")]) == 0
    assert api.calls == [("alter_offsets", "a", OFFSETS)]


def test_a_sinks_offsets_are_shown_as_they_can_be_set(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    sinks = [{"partition": {"kafka_partition": 2, "kafka_topic": "t"}, "offset": {"kafka_offset": 9}}]
    api.answer_offsets = lambda _name: sinks  # type: ignore[method-assign]
    assert main(["offsets", "get", "a"]) == 0
    assert [line.split() for line in out(capsys)] == [["PARTITION", "OFFSET"], ["t:2", "9"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a"], "Name a partition and its offset"),
        (["a", "{", "1"], "Cannot read the partition"),
        (["a", "t:0", "x"], "Cannot read the offset"),
        (["a", "-f", "/no/such/file"], "No such file"),
    ],
)
def test_offsets_that_cannot_be_read_are_refused(
    api: PretendClient, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["offsets", "set", *arguments]) == 1
    assert message in capsys.readouterr().err
    assert api.calls == []


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["get", "connectors"], ["NAME  TYPE    STATE    TASKS", "a     source  RUNNING  1 FAILED"]),
        (["get", "status", "a"], ["NAME  STATE    WORKER", "a     RUNNING  h:1", "a-0   FAILED   h:1", "", "a-0: Error: boom"]),
        (["get", "tasks", "a"], ["TASK  CONFIG", "a-0   file=/f, db.password=[hidden]"]),
        (["get", "topics", "a"], ["TOPIC", "t"]),
        (["get", "offsets", "a"], ["PARTITION    OFFSET", "filename=/f  position=7"]),
        (["offsets", "get", "a"], ["PARTITION    OFFSET", "filename=/f  position=7"]),
        (["get", "plugins"], ["CLASS  TYPE    VERSION", "x.Y    source  1"]),
        (["plugins", "--all"], ["CLASS  TYPE    VERSION", "x.Y    source  1"]),
        (["get", "plugin", "Y"], ["KEY   TYPE    DEFAULT  IMPORTANCE", "file  STRING           HIGH"]),
        (["describe", "plugin", "Y"], ["KEY   TYPE    DEFAULT  IMPORTANCE", "file  STRING           HIGH", "", "file", "  D."]),
        (["get", "loggers"], ["LOGGER  LEVEL", "root    INFO"]),
        (["loggers", "get"], ["LOGGER  LEVEL", "root    INFO"]),
        (["loggers", "get", "x"], ["LOGGER  LEVEL", "x       WARN"]),
    ],
)
def test_each_kind_has_a_table_and_json_and_yaml(
    api: PretendClient, capsys: pytest.CaptureFixture[str], arguments: list[str], lines: list[str]
) -> None:
    import yaml

    assert main(arguments) == 0
    assert out(capsys) == lines
    assert main([*arguments, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert main([*arguments, "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == document


def test_a_configs_secrets_are_shown_only_if_asked_for(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    for output in ("table", "json", "yaml"):
        for what in (["get", "config", "a"], ["describe", "connector", "a"], ["get", "tasks", "a"]):
            assert main([*what, "-o", output]) == 0
    printed = capsys.readouterr().out
    assert "[hidden]" in printed
    assert "hunter2" not in printed
    assert main(["get", "config", "a", "--show-secrets", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == CONFIG


def test_describe_shows_everything_and_leaves_out_what_the_server_cannot_tell(
    api: PretendClient, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["describe", "connector", "a"]) == 0
    printed = out(capsys)
    wanted = [
        "State  RUNNING",
        "Config",
        "file             /f",
        "Tasks",
        "a-0   FAILED   h:1",
        "Topics",
        "filename=/f  position=7",
    ]
    assert [line for line in [*wanted, "Error of task 0", "Error: boom"] if line not in printed] == []
    api.failures = {"topics": RestError(403, "off"), "offsets": RestError(404, "none")}
    assert main(["describe", "connector", "a"]) == 0
    printed = out(capsys)
    assert "Topics" not in printed
    assert "Offsets" not in printed
    api.failures = {"topics": RestError(0, "away")}
    assert main(["describe", "connector", "a"]) == 5


@pytest.mark.parametrize(
    ("status", "code", "hint"),
    [
        (0, 5, "sluiceway up"),
        (400, 3, ""),
        (401, 6, "contexts set"),
        (403, 6, "contexts set"),
        (404, 4, ""),
        (409, 7, ""),
        (500, 1, ""),
    ],
)
def test_the_exit_code_tells_what_kind_of_failure_it_was(
    api: PretendClient, capsys: pytest.CaptureFixture[str], status: int, code: int, hint: str
) -> None:
    api.failures = {"pause": RestError(status, "No.")}
    assert main(["pause", "a"]) == code
    printed = capsys.readouterr()
    assert printed.err.startswith("sluiceway: No.")
    assert hint in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_top_prints_tables_one_below_the_other_into_a_pipe(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "-n", "2", "-i", "0.1"]) == 0
    printed = out(capsys)
    assert [line.split() for line in printed[::2]] == [["NAME", "TYPE", "STATE", "TASKS", "OFFSETS/S", "LAG"]] * 2
    assert printed[1].split() == ["a", "source", "RUNNING", "1", "FAILED", "-", "-"]
    assert printed[3].split()[-2:] == ["0.0", "-"]
    api.failures = {"offsets": RestError(404, "no")}
    assert main(["top", "-n", "1"]) == 0
    api.failures = {"offsets": RestError(0, "away")}
    assert main(["top", "-n", "1"]) == 5


@pytest.mark.parametrize("config", [{"topics": "t"}, {"topics.regex": "t.*"}])
def test_the_lag_that_top_shows_counts_partitions_without_a_commit(
    config: dict[str, str],
    api: PretendClient,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    api.configs = {"s": {"name": "s", "connector.class": "FileStreamSink", **config}}
    committed = [(0, 70), (5, 9)]  # partition 5 does not exist any more
    offsets = [
        {"partition": {"kafka_topic": "t", "kafka_partition": partition}, "offset": {"kafka_offset": offset}}
        for partition, offset in committed
    ]
    monkeypatch.setattr(api, "answer_statuses", lambda: {"s": STATUS | {"name": "s", "type": "sink"}})
    monkeypatch.setattr(api, "answer_offsets", lambda _name: offsets)
    begins, ends = {0: 5, 1: 30}, {0: 100, 1: 50}
    monkeypatch.setattr("sluiceway.kafka.clients.admin_client", lambda _worker: object())
    monkeypatch.setattr("sluiceway.kafka.admin.partition_counts", lambda _admin: {"t": 2}, raising=False)
    for name, known in (("beginning_offsets", begins), ("end_offsets", ends)):
        monkeypatch.setattr(
            f"sluiceway.kafka.admin.{name}",
            lambda _admin, places, known=known: {place: known[place.partition] for place in places if place.partition in known},
        )
    worker = tmp_path / "worker.properties"
    worker.write_text("bootstrap.servers=b:9092\n")
    assert main(["top", "-n", "1", "--worker", str(worker)]) == 0
    assert out(capsys)[1].split()[-1] == "50"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_shell_code(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "sluiceway" in capsys.readouterr().out


def test_a_shell_is_told_the_verbs_that_fit() -> None:
    script = (
        'eval "$(sluiceway completion bash)"; COMP_LINE="sluiceway re"; COMP_POINT=12; COMP_WORDS=(sluiceway re); COMP_CWORD=1; '
        '_python_argcomplete sluiceway; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, env={"PATH": path})
    assert {word.strip() for word in done.stdout.split()} == {"rest", "restart", "resume"}, done


def test_connectors_names_are_completed_and_a_server_that_is_away_offers_none(api: PretendClient) -> None:
    import argparse

    api.answer_connectors = lambda: ["abc", "abd", "x"]  # type: ignore[attr-defined]
    assert list(common._complete_connector("ab", argparse.Namespace())) == ["abc", "abd"]
    api.failures = {"connectors": RestError(0, "away")}
    assert list(common._complete_connector("ab", argparse.Namespace())) == []


def test_the_command_starts_in_well_under_a_second() -> None:
    def seconds() -> float:  # of a processor: other processes on the machine do not count
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "sluiceway.cli.main", "--version"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(3)) < 0.4


def test_a_call_of_the_rest_api_imports_neither_airflow_nor_spark_nor_a_kafka_client() -> None:
    heavy = "'airflow', 'pyspark', 'confluent_kafka', 'fastapi', 'uvicorn'"
    code = (
        "import sys; from sluiceway.cli.main import main; code = main(['get', 'connectors', '--server', 'http://127.0.0.1:1']); "
        f"print(code, [m for m in ({heavy}) if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "5 []"
