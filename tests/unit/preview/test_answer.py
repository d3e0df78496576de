"""The answer of a preview."""

from __future__ import annotations

from typing import Any

from sluiceway.preview.answer import Answer


def hidden(text: str) -> str:
    return text.replace("hunter2", "${file:a:b}")


def filled(*events: dict[str, Any]) -> Answer:
    answer = Answer(hidden)
    for event in events:
        answer.add(event)
    return answer


def test_it_collects_records_target_warnings_and_note() -> None:
    answer = filled(
        {"event": "ready"},
        {"event": "phase", "phase": "poll()"},
        {"event": "record", "number": 1, "error": None},
        {"event": "target", "target": ["row"]},
        {"event": "warning", "text": "slow"},
        {"event": "end", "note": "no more"},
    )
    assert (answer.ready, answer.ended, answer.phase) == (True, True, "poll()")
    assert answer.to_json() == {
        "records": [{"number": 1, "error": None}],
        "target": {"target": ["row"]},
        "note": "no more",
        "warnings": ["slow"],
        "error": None,
    }


def test_a_warning_that_repeats_is_there_once() -> None:
    answer = filled(*({"event": "warning", "text": text} for text in ("no file", "no file", "slow", "no file")))
    assert answer.to_json()["warnings"] == ["no file", "slow"]


def test_what_a_provider_resolved_is_hidden_in_messages_only() -> None:
    answer = filled(
        {"event": "record", "before": "hunter2", "error": {"message": "hunter2", "tolerated": True}},
        {"event": "target", "target": None, "error": "hunter2"},
        {"event": "warning", "text": "hunter2"},
        {"event": "end", "error": {"message": "hunter2", "trace": "at hunter2"}},
    ).to_json()
    assert answer["records"] == [{"before": "hunter2", "error": {"message": "${file:a:b}", "tolerated": True}}]
    assert answer["target"]["error"] == "${file:a:b}"
    assert answer["warnings"] == ["${file:a:b}"]
    assert answer["error"] == {"message": "${file:a:b}", "trace": "at ${file:a:b}"}


def test_an_ended_process_says_where_it_was() -> None:
    answer = filled({"event": "phase", "phase": "OddTask.poll() of task 0"})
    answer.stopped(10)
    assert answer.note == "The preview was ended after 10 s, in OddTask.poll() of task 0."


def test_a_crash_says_how_and_where() -> None:
    answer = filled({"event": "phase", "phase": "poll()"})
    answer.crashed(-11, "hunter2")
    assert answer.error == {"message": "The preview's process ended by signal 11 in poll().", "trace": "${file:a:b}"}
    answer.crashed(1, "")
    assert answer.error == {"message": "The preview's process ended with exit code 1 in poll().", "trace": ""}


def test_warnings_are_bounded() -> None:
    assert len(filled(*({"event": "warning", "text": str(each)} for each in range(100))).warnings) == 20
