"""Compares Sluiceway's results with Kafka Connect 4.3.0's recorded ones (data/*vectors.jsonl).

compare_vectors.py describes the levels of comparison. The vectors in more_vectors.jsonl were made with ``oracle/``, which
generates any number of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.compare_vectors import check

HERE = Path(__file__).parent
RECORDED = HERE / "data" / "vectors.jsonl"
LEVELS = {"outcome": 1.0, "class": 0.99, "message": 0.99}
REFUSED_HERE = {
    "configdef-098c15b0c1": "exactly.once.support",
    "configdef-20eee78187": "transaction.boundary",
}
"""Taken by the standalone worker that was asked, which does not look at these keys; a distributed one refuses, as ours does."""


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.split("\n") if line]


VECTORS = lines(RECORDED.read_text(encoding="utf-8"))
MORE = lines((HERE / "data" / "more_vectors.jsonl").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def answers() -> Mapping[str, dict[str, Any]]:
    """The results of the answer.py command by vector id."""
    command = [sys.executable, str(HERE / "answer.py")]
    questions = "\n".join(json.dumps(vector) for vector in (*VECTORS, *MORE))
    done = subprocess.run(command, input=questions.encode(), capture_output=True, check=True)
    return {answer["id"]: answer for answer in lines(done.stdout.decode())}


def test_each_vector_has_one_answer(answers: Mapping[str, dict[str, Any]]) -> None:
    assert set(answers) == {vector["id"] for vector in (*VECTORS, *MORE)}
    assert not [answer for answer in answers.values() if "not answered" in str(answer.get("error", {}).get("message"))]


@pytest.mark.parametrize("level", LEVELS)
def test_answers_are_those_of_kafka_connect(level: str, answers: Mapping[str, dict[str, Any]]) -> None:
    same = [vector for vector in VECTORS if vector["id"] not in REFUSED_HERE]
    misses = {vector["id"]: differences for vector in same if (differences := check(vector, answers[vector["id"]], level))}
    for id_, differences in misses.items():
        print(id_, *differences, sep="\n    ")
    assert 1 - len(misses) / len(same) >= LEVELS[level], f"{len(misses)} of {len(same)} differ: {sorted(misses)}"


def test_errors_of_distributed_workers_only_are_reported(answers: Mapping[str, dict[str, Any]]) -> None:
    for id_, key in REFUSED_HERE.items():
        assert [each["name"] for each in answers[id_]["result"]["configs"] if each["errors"]] == [key]


def test_answers_to_more_questions_have_kafka_connects_messages(answers: Mapping[str, dict[str, Any]]) -> None:
    misses = {vector["id"]: differences for vector in MORE if (differences := check(vector, answers[vector["id"]], "message"))}
    assert len(MORE) > 300
    assert not misses


def test_an_invalid_vector_gets_an_error_and_does_not_affect_others() -> None:
    good = VECTORS[0]
    questions = "\n".join(json.dumps(vector) for vector in ({"id": "x", "kind": "riddle"}, good, {"id": "y"}))
    command = [sys.executable, str(HERE / "answer.py")]
    done = subprocess.run(command, input=questions.encode(), capture_output=True, check=True)
    first, second, third = lines(done.stdout.decode())
    assert first["error"]["class"] == third["error"]["class"] == "java.lang.IllegalStateException"
    assert not check(good, second, "message")
