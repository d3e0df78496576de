"""``GET /connectors/{name}/offsets/find``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sluiceway.storage.model import State
from support.rest_replay import Connect

SINK = {"connector.class": "FileStreamSink", "topics": "t", "file": "/f"}


def edit(partition: int, offset: int | None) -> dict[str, Any]:
    where = {"kafka_partition": partition, "kafka_topic": "t"}
    return {"partition": where, "offset": None if offset is None else {"kafka_offset": offset}}


def offsets(connect: Connect, query: str, name: str = "k") -> list[dict[str, Any]]:
    answer = connect.http.get(f"/connectors/{name}/offsets/find?{query}")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["offsets"]
    return found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("to=earliest", [10, 10]),
        ("to=latest", [100, 100]),
        ("to=1970-01-01T00:00:00.042", [42, 42]),
        ("to=2026-01-01T00:00:00", [100, 100]),
        ("to=latest&partition=1", [None, 100]),
        ("shiftBy=-3&partition=0", [47, None]),
    ],
)
def test_offsets_of_a_sink_are_found_and_can_be_set(connect: Connect, query: str, found: list[int | None]) -> None:
    connect.make("k", SINK, State.STOPPED)
    connect.http.patch("/connectors/k/offsets", json={"offsets": [edit(0, 50)]})
    stored = {0: {"kafka_offset": 50}, 1: None}
    expected = [edit(number, offset) | {"before": stored[number]} for number, offset in enumerate(found) if offset is not None]
    answer = offsets(connect, query)
    assert answer == expected
    edits = [{"partition": each["partition"], "offset": each["offset"]} for each in answer]
    assert connect.http.patch("/connectors/k/offsets", json={"offsets": edits}).status_code == 200
    set_ = {each["partition"]["kafka_partition"]: each["offset"] for each in edits}
    now = connect.http.get("/connectors/k/offsets").json()["offsets"]
    assert {each["partition"]["kafka_partition"]: each["offset"] for each in now} == {0: {"kafka_offset": 50}} | set_


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("", 400, "Name one target"),
        ("to=latest&topic=u", 400, "does not read topic u"),
        ("to=latest&partition=7", 404, "do not exist: t:7"),
        ("shiftBy=1", 400, "no offset to shift in partition t:0"),
    ],
)
def test_errors_say_what_is_wrong(connect: Connect, query: str, status: int, message: str) -> None:
    connect.make("k", SINK, State.STOPPED)
    answer = connect.http.get(f"/connectors/k/offsets/find?{query}")
    assert (answer.status_code, message in answer.json()["message"]) == (status, True), answer.text
    assert connect.http.get("/connectors/none/offsets/find?to=latest").status_code == 404


def test_offsets_of_a_source_are_found_by_its_connector(connect: Connect, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("a\nbb\n")
    connect.make("s", {"connector.class": "FileStreamSource", "file": str(file), "topic": "t"}, State.STOPPED)
    partition = {"filename": str(file)}
    found = offsets(connect, "to=latest", "s")
    assert found == [{"partition": partition, "before": None, "offset": {"position": 5}}]
    connect.http.patch("/connectors/s/offsets", json={"offsets": [{"partition": partition, "offset": found[0]["offset"]}]})
    assert offsets(connect, "shiftBy=-1", "s") == [{"partition": partition, "before": {"position": 5}, "offset": {"position": 2}}]


def test_a_source_that_cannot_find_offsets_says_so(connect: Connect) -> None:
    config = {"connector.class": "VerifiableSource", "topic": "t", "throughput": "1", "id": "1"}
    connect.make("s", config, State.STOPPED)
    answer = connect.http.get("/connectors/s/offsets/find?to=latest")
    assert (answer.status_code, "cannot find offsets" in answer.json()["message"]) == (400, True), answer.text
