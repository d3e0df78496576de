"""The command ``migrate`` between clusters in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluiceway.cli.main import main
from sluiceway.rest.client import RestError
from unit.cli.pretend_client import out
from unit.cli.pretend_cluster import JAVA_SOURCE, PYTHON_SOURCE, PretendCluster

THEIRS, OURS = "http://connect:8083", "http://ours"
MIGRATE = ("migrate", "--from", THEIRS, "--to", OURS)

Clusters = tuple[PretendCluster, PretendCluster]


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clusters]:
    found = PretendCluster(), PretendCluster(sluiceway=True)
    by_address = {THEIRS: found[0], OURS: found[1]}
    monkeypatch.setattr("sluiceway.rest.client.ConnectClient", lambda servers, **_: by_address[servers[0]])
    monkeypatch.setattr("sluiceway.cli.migration_cluster.POLL_SECONDS", 0.001)
    return found  # type: ignore[return-value]


def test_the_report_shows_each_connector_and_changes_nothing(clusters: Clusters, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = clusters
    source.add("a")
    source.add("b", state="PAUSED", **{"connector.class": JAVA_SOURCE, "db.password": "hunter2"})
    assert main([*MIGRATE]) == 1
    printed = capsys.readouterr().out
    assert "From Kafka Connect 4.3.0 at http://connect:8083 to Sluiceway 4.3.0 at http://ours, Kafka cluster k." in printed
    assert ["a", "source", "RUNNING", source.configs["a"]["connector.class"], "Python", "yes"] in map(
        str.split, printed.splitlines()
    )
    assert f"missing  connector.class={JAVA_SOURCE}: give its folder" in printed
    assert printed.endswith("1 of 2 connectors can move\n")
    assert not source.writes + target.writes

    target.implementations[JAVA_SOURCE] = {"language": "java", "version": "3.7", "location": "/plugins/x"}
    assert main([*MIGRATE, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["shared_topics"] is False
    assert [each["movable"] for each in document["connectors"]] == [True, True]
    assert document["connectors"][1]["plugins"][0]["implementation"] == "java"
    target.errors = ["Invalid value"]
    assert main([*MIGRATE, "--connectors", "b"]) == 1
    printed = capsys.readouterr().out
    assert "Invalid value" in printed
    assert "hunter2" not in printed
    assert "\na " not in printed


def test_a_worker_file_adds_topics_to_the_report(clusters: Clusters, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clusters[0].add("a")
    (tmp_path / "w").write_text("group.id=g\nconfig.storage.topic=c\noffset.storage.topic=o\nstatus.storage.topic=s\n")
    assert main([*MIGRATE, "--connect-worker-config", str(tmp_path / "w")]) == 0
    assert "Internal topics of the source: c, o, s; group.id=g." in capsys.readouterr().out


@pytest.mark.parametrize("knowing", [0, 1])
def test_what_a_worker_file_says_of_converters_is_masked_by_type(
    clusters: Clusters, tmp_path: Path, capsys: pytest.CaptureFixture[str], knowing: int
) -> None:
    clusters[0].add("a", **{"key.converter": ""})
    clusters[knowing].passwords = {"my.Converter": ["phrase"]}
    properties = {"key.converter": "my.Converter", "key.converter.phrase": "hunter2", "key.converter.url": "http://u:hunter2@r"}
    (tmp_path / "w").write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    main([*MIGRATE, "--connect-worker-config", str(tmp_path / "w")])
    printed = "".join(capsys.readouterr())
    assert "key.converter.phrase=[hidden], key.converter.url=http://[hidden]@r" in printed
    assert "hunter2" not in printed


def test_connectors_that_can_move_are_moved_and_moved_back(clusters: Clusters, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = clusters
    source.add("a")
    source.add("b", state="RUNNING", **{"connector.class": JAVA_SOURCE})
    assert main([*MIGRATE, "--execute", "--all"]) == 1
    lines = out(capsys)
    assert "a: moved, RUNNING" in lines
    assert "1 of 2 connectors have moved, in 0" in lines[-2]
    assert lines[-1] == (
        "To undo it: sluiceway migrate --from http://connect:8083 --to http://ours --back --execute --connectors a"
    )
    assert "b: cannot move, nothing was changed" in lines
    assert (source.states, target.states) == ({"a": "STOPPED", "b": "RUNNING"}, {"a": "RUNNING"})
    target.add("never there")
    assert main([*MIGRATE, "--back", "--execute", "--all"]) == 0
    assert (source.states["a"], target.states["a"]) == ("RUNNING", "STOPPED")
    assert target.states["never there"] == "RUNNING"
    assert "never there" not in source.states
    assert main([*MIGRATE, "--execute", "--connectors", "a", "--delete-source"]) == 0
    assert list(source.configs) == ["b"]
    assert main([*MIGRATE, "--execute", "--connectors", "a", "--delete-source"]) == 0, "again"
    assert target.states["a"] == "RUNNING"


def test_a_command_that_goes_on_says_what_it_has_moved_and_the_report_how_far_moves_are(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = clusters
    for name, state in (("a", "RUNNING"), ("b", "PAUSED"), ("c", "RUNNING")):
        source.add(name, state)
    assert main([*MIGRATE, "--execute", "--connectors", "a"]) == 0
    target.configs["b"] = {**source.configs["b"], "sluiceway.migrate.state": "PAUSED"}  # killed between its last two steps
    source.states["b"], target.states["b"], target.stored["b"] = "STOPPED", "PAUSED", list(source.stored["b"])
    capsys.readouterr()
    assert main(MIGRATE) == 0
    rows = {line.split()[0]: line for line in out(capsys) if line[:2] in ("a ", "b ", "c ")}
    assert rows["a"].endswith("has moved")
    assert "STOPPED, to be PAUSED" in rows["b"]
    assert rows["b"].endswith("goes on")
    assert rows["c"].endswith("yes")
    assert main([*MIGRATE, "--execute", "--all"]) == 0
    lines = out(capsys)
    assert lines[-2].endswith("--back --execute --connectors b,c")
    assert "was moved" in next(line for line in lines if line.startswith("a  "))
    assert lines[-1].startswith("Those that were moved before go back with")


def test_a_worker_that_starts_is_not_believed_until_it_has_read_its_topics(
    clusters: Clusters, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka Connect answers with expand=info and expand=status from what it has read so far."""
    source, _, has_read = *clusters, list[bool]()
    infos, statuses, config = source.infos, source.statuses, source.config
    refusals = iter([RestError(0, "Connection refused"), RestError(409, "a rebalance"), RestError(0, "404 Not Found")])

    def read_config(name: str) -> dict[str, str]:
        if (refusal := next(refusals, None)) is not None:
            raise refusal
        has_read.append(True)
        if name != "a":
            raise RestError(403, f"Not allowed to read {name}")
        return config(name)

    monkeypatch.setattr(source, "config", read_config)
    monkeypatch.setattr(source, "infos", lambda: infos() if has_read else {})
    monkeypatch.setattr(source, "statuses", lambda: statuses() if has_read else {})
    source.add("a")
    assert main([*MIGRATE, "--execute", "--all"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("http://connect:8083 is not ready; trying again for up to 300 s. Connection refused") == 1
    assert "1 of 1 connectors have moved" in printed


@pytest.mark.parametrize(("language", "warns"), [("python", True), ("java", False)])
def test_keys_that_a_java_plugin_may_read_are_not_called_useless(
    clusters: Clusters, capsys: pytest.CaptureFixture[str], language: str, warns: bool
) -> None:
    source, target = clusters
    source.add("a", **{"raw.setting": "x"})
    target.undefined = source.undefined = {"raw.setting"}
    target.implementations[PYTHON_SOURCE] = {"language": language, "version": "4.3.0", "location": None}
    assert main(MIGRATE) == 0
    assert any("raw.setting" in line for line in out(capsys)) is warns
    assert main([*MIGRATE, "--execute", "--all"]) == 0
    out(capsys)
    assert main([*MIGRATE, "--back"]) == 0, "to Kafka Connect, whose plugins are all in Java"
    assert not any("raw.setting" in line for line in out(capsys))


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Return the options for two worker files with other converters."""
    for name, converter in (("there", "StringConverter"), ("here", "JsonConverter")):
        (tmp_path / name).write_text(f"value.converter={converter}\noffset.flush.interval.ms={len(name)}\n")
    return ["--connect-worker-config", str(tmp_path / "there"), "--worker-config", str(tmp_path / "here")]


def test_connectors_that_would_have_other_bytes_do_not_move_unless_that_is_accepted(
    clusters: Clusters, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = clusters
    source.add("own")
    source.add("inherits", **{"value.converter": ""})
    assert main([*MIGRATE, *files]) == 1
    lines = out(capsys)
    assert "  differs  offset.flush.interval.ms: 5 at the source, 4 at the target. Concerns inherits, own" in lines
    assert "  differs  value.converter of the worker files, see above: other bytes at the target" in lines
    assert "1 of 2 connectors can move" in lines
    assert main([*MIGRATE, *files, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [each["changes_bytes"] for each in document["worker_differences"]] == [False, True]

    assert main([*MIGRATE, *files, "--execute", "--all"]) == 1
    assert source.states == {"own": "STOPPED", "inherits": "RUNNING"}
    assert main([*MIGRATE, *files, "--back", "--execute", "--all"]) == 0
    assert main([*MIGRATE, *files, "--execute", "--all", "--accept", "value.converter"]) == 0
    assert target.states == {"own": "RUNNING", "inherits": "RUNNING"}
    assert main([*MIGRATE, *files, "--back", "--execute", "--connectors", "inherits"]) == 1, "on the way back, too"
    assert target.states["inherits"] == "RUNNING"


def test_worker_files_that_agree_are_said_to(clusters: Clusters, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clusters[0].add("a", **{"value.converter": ""})
    (tmp_path / "w").write_text("value.converter=StringConverter\ngroup.id=g\n")
    assert main([*MIGRATE, "--connect-worker-config", str(tmp_path / "w"), "--worker-config", str(tmp_path / "w")]) == 0
    lines = out(capsys)
    assert "The worker files agree in what these connectors take from them." in lines
    assert not any("must have the same" in line for line in lines)


def test_the_summary_is_a_document_for_programs(clusters: Clusters, capsys: pytest.CaptureFixture[str]) -> None:
    source, _ = clusters
    for name in ("db-1", "db-2", "files"):
        source.add(name)
    source.add("db-3", state="RUNNING", **{"connector.class": JAVA_SOURCE})
    assert main([*MIGRATE, "--execute", "--connectors", "db-*", "--json", "--parallel", "2"]) == 1
    printed = capsys.readouterr()
    found = {each.pop("name"): each for each in json.loads(printed.out)["connectors"]}
    offsets = [{"partition": {"f": "db-1", "a": 1}, "offset": {"position": 7}}]
    assert found["db-1"].pop("standstill_seconds") >= 0
    moved = {"result": "moved", "state": "RUNNING", "offsets_before": offsets, "offsets_after": offsets, "error": None}
    assert found["db-1"] == moved
    assert (found["db-2"]["result"], found["db-3"]["result"]) == ("moved", "not moved")
    assert found["db-3"]["error"] == "It cannot move. Nothing was changed."
    assert "db-2: moved, RUNNING" in printed.err.splitlines()
    assert source.states["files"] == "RUNNING"


def test_a_connector_that_fails_does_not_keep_others_from_moving(clusters: Clusters, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = clusters
    for name in ("a", "b"):
        source.add(name)

    def fail(verb: str, name: str) -> None:
        if (verb, name) == ("resume", "a"):
            raise RestError(400, "Boom.")

    target.before_write = fail
    assert main([*MIGRATE, "--execute", "--all"]) == 1
    assert "a: not moved. Boom. Connector a is RUNNING again at http://connect:8083, and STOPPED on the target." in out(capsys)
    assert (source.states, target.states["b"]) == ({"a": "RUNNING", "b": "STOPPED"}, "RUNNING")


def test_clusters_that_share_their_topics_copy_nothing(clusters: Clusters, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = clusters
    for cluster in clusters:
        cluster.add("a")
        cluster.worker_id = "w:1"
    assert main([*MIGRATE]) == 0
    assert "Both clusters use the same internal topics" in capsys.readouterr().out
    assert main([*MIGRATE, "--execute", "--all", "--timeout", "0.1"]) == 2
    printed = capsys.readouterr()
    assert "Stop the workers of the source" in printed.out
    assert "the workers of http://connect:8083 still run. Stop them." in printed.err
    assert not source.writes + target.writes


def gone() -> dict[str, Any]:
    raise RestError(0, "gone")


def test_the_target_reports_on_its_own_topics_when_the_workers_have_ended(
    clusters: Clusters, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = clusters
    target.add("a")
    target.add("b", state="PAUSED", **{"connector.class": JAVA_SOURCE})
    monkeypatch.setattr(source, "root", gone)
    for more in ((), ("--execute", "--all")):
        assert main([*MIGRATE, *more]) == 2, "it may be down for a moment"
        assert "http://connect:8083 does not respond. Is it running? If its workers have ended" in capsys.readouterr().err
    assert main([*MIGRATE, "--shared"]) == 1
    lines = out(capsys)
    assert lines[0].startswith("http://connect:8083 does not respond. This is about the connectors that http://ours reads in its")
    assert "1 of 2 connectors can move" in lines
    assert main([*MIGRATE, "--shared", "--execute", "--all"]) == 2
    assert "http://ours cannot run b, and a take-over of the topics is of all connectors" in capsys.readouterr().err
    assert main([*MIGRATE, "--shared", "--execute", "--connectors", "a"]) == 0
    assert "a: RUNNING at http://ours" in out(capsys)
    assert not source.writes + target.writes


def test_nobody_is_asked_to_stop_the_workers_while_a_connector_could_not_run(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    for cluster in clusters:
        cluster.add("a")
        cluster.add("b", **{"connector.class": JAVA_SOURCE})
        cluster.worker_id = "w:1"
    assert main([*MIGRATE, "--execute", "--all", "--timeout", "0.1"]) == 2
    printed = capsys.readouterr()
    assert "b: cannot move, nothing was changed" in printed.out
    assert "Stop the workers" not in printed.out
    assert "cannot run b" in printed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--execute",), "--execute moves connectors. Name them with --connectors a,b or give --all."),
        (("--connectors", "a,none"), "http://connect:8083 has no connector none. It has: a."),
        (("--connect-worker-config", "/none"), "Cannot read the properties file /none"),
    ],
)
def test_wrong_options_are_errors(
    clusters: Clusters, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    clusters[0].add("a")
    assert main([*MIGRATE, *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (PretendCluster(version="3.4.1"), PretendCluster(sluiceway=True), "has version 3.4.1. --execute needs 3.5 for"),
        (PretendCluster(sluiceway=True), PretendCluster(version="3.6.0"), "has version 3.6.0. --execute needs 3.7 for"),
        (PretendCluster(kafka="x"), PretendCluster(sluiceway=True), "uses the Kafka cluster x, http://ours uses k"),
    ],
)
def test_clusters_that_cannot_exchange_connectors_are_refused(
    source: PretendCluster,
    target: PretendCluster,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    by_address = {THEIRS: source, OURS: target}
    monkeypatch.setattr("sluiceway.rest.client.ConnectClient", lambda servers, **_: by_address[servers[0]])
    assert main([*MIGRATE, "--execute", "--all"]) == 2
    assert message in capsys.readouterr().err


def test_the_token_of_the_environment_is_not_sent_to_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, Any]] = []

    class Client(PretendCluster):
        def __init__(self, _servers: object, **options: object) -> None:
            super().__init__()
            sent.append(options)

    monkeypatch.setattr("sluiceway.rest.client.ConnectClient", Client)
    monkeypatch.setenv("SLUICEWAY_TOKEN", "t")
    monkeypatch.setenv("SLUICEWAY_SERVER", OURS)
    assert main(["migrate", "--from", THEIRS]) == 0
    theirs, ours = (dict(options.get("headers") or {}) for options in sent)
    assert "Authorization" not in theirs
    assert ours["Authorization"] == "Bearer t"
