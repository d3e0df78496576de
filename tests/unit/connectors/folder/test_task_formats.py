"""The task with formats of files that have an end, or records of types: restarts, bad files, and files that end too early."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sluiceway.errors import ConnectError
from support.folder_formats import plain
from support.folder_task import FolderTask

LONG_AGO = 1_600_000_000
TOLERANT = {"errors.tolerance": "all"}
COUNT = 9000


class Runner(FolderTask):
    """A task that reads files, each once."""

    def __init__(self, **config: str) -> None:
        super().__init__(**{"mode": "files", **config})


def old(path: Path, data: bytes | str) -> Path:
    """Write a file that has not changed for long."""
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def texts() -> list[str]:
    return ["x" * (number % 70) for number in range(COUNT)]


def json_array() -> tuple[str, list[Any], dict[str, str]]:
    found = [{"n": number, "t": [text]} for number, text in enumerate(texts())]
    return json.dumps(found, indent=1), found, {"format": "json-array"}


def xml() -> tuple[str, list[Any], dict[str, str]]:
    records = "\n".join(f'<order n="{number}">{text}</order><!-- <order> -->' for number, text in enumerate(texts()))
    found = [{"@n": str(number)} | ({"#text": text} if text else {}) for number, text in enumerate(texts())]
    return f"<?xml version='1.0'?>\n<orders>{records}</orders>\n", found, {"format": "xml", "xml.record": "order"}


def fixed() -> tuple[str, list[Any], dict[str, str]]:
    lines = "".join(f"{number:6}{text:70}\n" for number, text in enumerate(texts()))
    found = [[str(number), text or None] for number, text in enumerate(texts())]
    return lines, found, {"format": "fixed", "fixed.columns": "n:6,text:70", "fixed.null": ""}


def typed_csv() -> tuple[str, list[Any], dict[str, str]]:
    day = dt.date(2026, 11, 29)
    lines = "".join(f"{number},{number}.5,{text},{day}\n" for number, text in enumerate(texts()))
    found = [[number, Decimal(f"{number}.50"), text, day] for number, text in enumerate(texts())]
    return f"n,price,text,day\n{lines}", found, {"format": "csv", "csv.types": "n:int32,price:decimal(7,2),day:date"}


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("make", [json_array, xml, fixed, typed_csv])
def test_a_restart_anywhere_repeats_and_loses_nothing(
    tmp_path: Path, make: Callable[[], tuple[str, list[Any], dict[str, str]]], *, compressed: bool, columnar: bool
) -> None:
    text, expected, config = make()
    old(tmp_path / ("a.gz" if compressed else "a"), gzip.compress(text.encode()) if compressed else text)
    run, found, draw = Runner(paths=str(tmp_path), **{"batch.size": "700"}, **config), [], random.Random(5)  # noqa: S311
    while records := run.poll(columnar=columnar):
        taken = records[: draw.randrange(1, len(records) + 1)] if draw.random() < 0.5 else records
        found += [plain(each.value) for each in taken]
        run.take(taken)
        if len(taken) < len(records):
            run.restart()
    assert found == expected
    assert (run.columnar > 0) is columnar
    run.run()
    assert [each["done"] for each in run.offsets.values()] == [True]
    run.restart()
    assert run.run() == []


@pytest.mark.parametrize(
    ("config", "text", "good", "reason"),
    [
        ({"format": "json-array"}, "[1, 2", [1, 2], "the file ends before the ] of its array"),
        ({"format": "json-array"}, '[1, {"a": ', [1], "an element is not JSON"),
        ({"format": "json-array"}, "[1] [2]", [1], "nothing after it"),
        ({"format": "xml", "xml.record": "b"}, "<a><b/>\n", [{}], "the file ends before the end of its root <a>"),
        ({"format": "xml", "xml.record": "b"}, "<a><b/><b>", [{}], "the file ends before the end of '<b>'"),
        ({"format": "csv", "csv.types": "n:int32"}, "n\n1\nx\n", [[1]], "column n: 'x' is no int32"),
        ({"format": "fixed", "fixed.columns": "n:2"}, " 1\n222\n", [["1"]], "3 characters instead of 2"),
    ],
)
@pytest.mark.parametrize("columnar", [True, False])
def test_what_is_bad_is_reported_once(
    tmp_path: Path, config: dict[str, str], text: str, good: list[Any], reason: str, *, columnar: bool
) -> None:
    old(tmp_path / "a", text)
    run = Runner(paths=str(tmp_path), **config, **TOLERANT)
    assert list(map(plain, run.run(columnar=columnar))) == good
    ((_, error),) = run.context.reported
    assert str(error).startswith(f"{tmp_path}/a at byte ")
    assert reason in str(error)
    run.restart()
    assert run.run() == []
    with pytest.raises(ConnectError, match="at byte"):
        Runner(paths=str(tmp_path), **config).run(columnar=columnar)


def test_a_large_array_that_ends_too_early_is_reported(tmp_path: Path) -> None:
    """Also if the last block would be columns."""
    old(tmp_path / "a", "[" + ",".join(map(str, range(COUNT))))
    run = Runner(paths=str(tmp_path), format="json-array", **TOLERANT)
    assert run.run() == list(range(COUNT))
    assert len(run.context.reported) == 1


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"format": "json-array"}, '[1, "' + "x" * 300_000 + '"]'),
        ({"format": "xml", "xml.record": "b"}, "<a><b/><b>" + "x" * 300_000 + "</b></a>"),
    ],
)
def test_a_record_that_is_too_large_ends_its_file(tmp_path: Path, config: dict[str, str], text: str) -> None:
    old(tmp_path / "a", text)
    run = Runner(paths=str(tmp_path), **config, **TOLERANT, **{"record.max.bytes": "262144"})
    assert len(run.run()) == 1
    ((_, error),) = run.context.reported
    assert "record of more than record.max.bytes=262144 bytes at byte" in str(error)


def test_what_is_between_records_may_be_larger_than_a_record(tmp_path: Path) -> None:
    old(tmp_path / "a", "<a>" + "<c>text</c>" * 60_000 + "<b/></a>")
    assert Runner(paths=str(tmp_path), format="xml", **{"xml.record": "b", "record.max.bytes": "262144"}).run() == [{}]


@pytest.mark.parametrize(
    ("config", "text", "reason"),
    [
        ({"format": "json-array"}, '{"a": [1]}', "no JSON array"),
        ({"format": "json-array"}, "", "no JSON array"),
        ({"format": "json-array"}, " " * 300_000 + "[1]", "no start of its records"),
        ({"format": "xml", "xml.record": "b"}, '<!DOCTYPE a [<!ENTITY x "y">]><a><b>&x;</b></a>', "the entity x"),
        ({"format": "csv", "csv.types": "m:int32"}, "n\n1\n", "no column m of csv.types"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, config: dict[str, str], text: str, reason: str) -> None:
    old(tmp_path / "a", text)
    run = Runner(paths=str(tmp_path), **config, **TOLERANT, **{"record.max.bytes": "262144"})
    assert run.run() == []
    ((_, error),) = run.context.reported
    assert str(error).startswith(f"{tmp_path}/a")
    assert reason in str(error)


def test_an_array_that_grows_is_read_as_far_as_it_is_there(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("[1, 2, 3")
    run = Runner(paths=str(file), format="json-array", **{"stable.ms": "600000"})
    assert run.run() == [1, 2]
    with file.open("a") as out:
        out.write("4, 5]\n")
    assert run.run() == [34, 5]
    os.utime(file, (LONG_AGO, LONG_AGO))
    assert run.run() == []
    assert [each["done"] for each in run.offsets.values()] == [True]
