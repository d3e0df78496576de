"""The start of a preview, and configs with errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import BadRequestError
from sluiceway.herder import Herder
from sluiceway.preview.answer import Answer
from sluiceway.preview.request import Limits, PreviewRequest
from sluiceway.preview.service import preview
from sluiceway.storage.file_offset_backing_store import FileOffsetBackingStore
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from support.preview_connectors import PARTITION, SINK, SOURCE

CONFIG = {"name": "odd", "connector.class": SOURCE}


class Runs:
    """Keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[PreviewRequest] = []

    def __call__(self, request: PreviewRequest, answer: Answer) -> None:
        self.requests.append(request)
        answer.add({"event": "end", "note": "", "error": {"message": "hunter2"}})


@pytest.fixture
def herder(tmp_path: Path) -> Herder:
    secrets = tmp_path / "secrets"
    secrets.write_text("password=hunter2\n")
    worker = WorkerConfig.of(
        {"config.providers": "file", "config.providers.file.class": "FileConfigProvider", "bootstrap.servers": "localhost:1"}
    )
    offsets = FileOffsetBackingStore(tmp_path / "offsets")
    offsets.start()
    offsets.put("odd", [(PARTITION, {"n": 4})])
    return Herder(worker, MemoryConfigBackingStore(), MemoryStatusBackingStore(), offsets)


def previewed(herder: Herder, config: Mapping[str, str], runs: Runs, **more: Any) -> dict[str, Any]:
    return preview(herder, config, Limits(), run=runs, **more)


def test_a_new_connector_starts_at_the_beginning(herder: Herder) -> None:
    runs = Runs()
    answer = previewed(herder, CONFIG, runs)
    assert (answer["start"], answer["type"], runs.requests[0].offsets) == ("beginning", "source", None)


def test_an_existing_connector_starts_at_its_stored_offsets(herder: Herder) -> None:
    herder.create("odd", CONFIG)
    runs = Runs()
    assert previewed(herder, CONFIG, runs)["start"] == "stored offsets"
    assert runs.requests[0].offsets == [(PARTITION, {"n": 4})]
    assert previewed(herder, CONFIG, runs, from_beginning=True)["start"] == "beginning"
    assert runs.requests[1].offsets is None


def test_a_connector_of_the_other_type_has_no_offsets_for_it(herder: Herder) -> None:
    herder.create("odd", CONFIG)
    assert previewed(herder, {"name": "odd", "connector.class": SINK, "topics": "t"}, Runs())["start"] == "beginning"


def test_a_config_without_a_name_gets_one(herder: Herder) -> None:
    runs = Runs()
    assert previewed(herder, {"connector.class": SOURCE}, runs)["name"] == "preview"
    assert runs.requests[0].config["name"] == "preview"


def test_a_config_with_errors_is_answered_as_validate_does(herder: Herder) -> None:
    runs = Runs()
    wrong = {**CONFIG, "tasks.max": "none"}
    answer = previewed(herder, wrong, runs)
    assert answer["validation"] == herder.validate(wrong).to_json()
    assert (answer["records"], runs.requests) == ([], [])
    with pytest.raises(BadRequestError):
        previewed(herder, {"connector.class": "NoSuch"}, runs)


def test_references_are_resolved_for_the_process_and_hidden_in_messages(herder: Herder, tmp_path: Path) -> None:
    runs = Runs()
    reference = f"${{file:{tmp_path / 'secrets'}:password}}"
    answer = previewed(herder, {**CONFIG, "secret": reference}, runs)
    assert runs.requests[0].config["secret"] == "hunter2"
    assert answer["error"] == {"message": reference}
    assert "hunter2" not in repr(runs.requests[0])


def test_a_reference_that_cannot_be_resolved_is_a_warning(herder: Herder) -> None:
    answer = previewed(herder, {**CONFIG, "secret": "${file:/nowhere:password}"}, Runs())
    assert answer["warnings"] == ["The value of secret cannot be resolved on this machine: ${file:/nowhere:password}"]
