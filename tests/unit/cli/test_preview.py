"""``sluiceway preview``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sluiceway.cli.main import main
from unit.cli.pretend_client import CONFIG, PretendClient, out, write

ANSWER: dict[str, Any] = {
    "name": "a",
    "start": "beginning",
    "validation": None,
    "records": [],
    "target": None,
    "warnings": [],
    "error": None,
    "note": "The source had no records for 3 s.",
}
FAILED = {"number": 1, "message": {"topic": "t", "partition": 0, "offset": 1, "key": None, "value": None, "headers": []}} | {
    "before": None,
    "steps": [],
    "error": {"stage": "S", "class": "C", "message": "m", "outcome": "o"},
}


@pytest.mark.parametrize(
    ("changes", "code"),
    [({}, 0), ({"error": {"message": "boom"}}, 1), ({"records": [FAILED]}, 1), ({"validation": {"configs": []}}, 3)],
)
def test_the_exit_code_says_how_it_went(
    api: PretendClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], code: int
) -> None:
    monkeypatch.setattr(PretendClient, "answer_preview", lambda *_: {**ANSWER, **changes}, raising=False)
    assert main(["preview", "-f", write(tmp_path / "f.json", CONFIG)]) == code


def test_it_prints_text_or_the_answer(
    api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PretendClient, "answer_preview", lambda *_: ANSWER, raising=False)
    file = write(tmp_path / "f.json", CONFIG)
    assert main(["preview", "-f", file]) == 0
    assert out(capsys) == ["a: 0 record(s) from the beginning; nothing was written", f"  {ANSWER['note']}"]
    assert main(["preview", "-f", file, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [ANSWER]


def test_the_options_reach_the_server(api: PretendClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def preview(self: PretendClient, *arguments: Any, **named: Any) -> dict[str, Any]:
        asked.append((arguments, named))
        return ANSWER

    monkeypatch.setattr(PretendClient, "preview", preview, raising=False)
    file = write(tmp_path / "f.json", CONFIG)
    assert main(["preview", "-f", file, "--records", "3", "--seconds", "2", "--from-beginning"]) == 0
    (((plugin, config), named),) = asked
    assert (plugin, config["name"], named) == ("FileStreamSource", "a", {"records": 3, "seconds": 2.0, "from_beginning": True})


def test_a_file_without_a_class_is_refused(api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preview", "-f", write(tmp_path / "f.json", {"name": "a"})]) == 1
    assert "has no connector.class" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--records", "101"], "argument --records: '101' is not a number from 1 to 100"),
        (["--records", "0"], "argument --records: '0' is not a number from 1 to 100"),
        (["--records", "few"], "argument --records: 'few' is not a number from 1 to 100"),
        (["--seconds", "61"], "argument --seconds: '61' is not a number of seconds up to 60"),
        (["--seconds", "soon"], "argument --seconds: 'soon' is not a number of seconds up to 60"),
    ],
)
def test_a_number_beyond_the_limit_names_its_option(
    api: PretendClient, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit):
        main(["preview", "-f", "f.json", *arguments])
    assert message in capsys.readouterr().err


def test_it_names_keys_that_nothing_reads(
    api: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PretendClient, "answer_preview", lambda *_: ANSWER, raising=False)
    known = {
        "configs": [{"definition": {"name": key}, "value": {"name": key, "errors": []}} for key in ("topic", "file", *CONFIG)]
    }
    monkeypatch.setattr(PretendClient, "answer_validate", lambda *_: known)
    assert main(["preview", "-f", write(tmp_path / "f.json", {**CONFIG, "topci": "t"})]) == 0
    assert out(capsys)[2:] == ["  warning  topci = t", "           unknown key; did you mean topic?"]
