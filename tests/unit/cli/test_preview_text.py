"""A preview as text."""

from __future__ import annotations

from typing import Any

from sluiceway.cli.preview_text import lines


def image(value: Any, **more: Any) -> dict[str, Any]:
    empty = {"schema": None, "data": None}
    return {
        "topic": "t",
        "partition": None,
        "timestamp": None,
        "key": empty,
        "value": {"schema": None, "data": value},
        "headers": [],
        **more,
    }


def raw(value: str, **more: Any) -> dict[str, Any]:
    return {"topic": "t", "key": None, "value": {"size": 1, "text": value}, "headers": [], **more}


def answer(*records: dict[str, Any], **more: Any) -> dict[str, Any]:
    common: dict[str, Any] = {"start": "beginning", "validation": None, "target": None, "note": "", "warnings": [], "error": None}
    return {**common, "records": list(records), **more}


def test_a_source_record_is_shown_from_read_to_written() -> None:
    record = {
        "number": 1,
        "before": image("a", source_partition={"f": 1}, source_offset={"p": 2}),
        "steps": [{"transform": "up", "outcome": "changed", "records": [image("A", clipped=True)]}],
        "written": [raw("A", headers=[{"key": "h", "value": {"size": 1, "base64": "AA=="}}])],
        "error": None,
    }
    assert list(lines("c", {}, answer(record))) == [
        "c: 1 record(s) from the beginning; nothing was written",
        '  1. {"f": 1} {"p": 2}',
        '     read: topic=t value="a"',
        "     up: changed",
        '       topic=t value="A" (clipped)',
        "     written to t: value=A header h=base64:AA==",
    ]


def test_a_sink_record_is_shown_from_kafka_to_put_and_target() -> None:
    record = {
        "number": 1,
        "message": raw("a\x1b[2J", partition=0, offset=7),
        "before": image("a", partition=0),
        "steps": [],
        "put": [image("a", partition=0)],
        "error": None,
    }
    told = answer(record, start="stored offsets", target={"target": ["INSERT 1"]}, warnings=["slow"], note="no more")
    assert list(lines("c", {}, told)) == [
        "c: 1 record(s) from the stored offsets; nothing was written",
        "  1. t-0@7",
        "     in Kafka: value=a\\u001b[2J",
        '     converted: topic=t partition=0 value="a"',
        '     put: topic=t partition=0 value="a"',
        "  would write: INSERT 1",
        "  warning: slow",
        "  no more",
    ]


def test_a_failure_shows_its_stage_and_outcome() -> None:
    error = {"stage": "TRANSFORMATION", "class": "C", "transform": "up", "message": "m", "outcome": "The task fails."}
    record = {"number": 1, "message": raw("a", partition=0, offset=7), "before": None, "steps": [], "put": [], "error": error}
    told = answer(record, error={"message": "boom"}, target={"target": None, "error": "no table"})
    assert list(lines("c", {}, told))[3:] == [
        "     failed in TRANSFORMATION (up): m",
        "     The task fails.",
        "  The target cannot be shown: no table",
        "  error: boom",
    ]


def test_a_config_with_errors_is_shown_as_by_validate() -> None:
    found = {"configs": [{"definition": {"name": "a", "type": "STRING"}, "value": {"name": "a", "errors": ["bad"]}}]}
    assert list(lines("c", {"a": "1"}, answer(validation=found))) == [
        "c: 1 error(s), 0 warning(s)",
        "  error    a = 1",
        "           bad",
    ]
