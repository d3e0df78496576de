"""What the bodies of requests may have, and what those of answers leave out."""

from __future__ import annotations

import json

import pytest

from sluiceway.discovery import UNDEFINED_VERSION
from sluiceway.herder.validation import InstalledPlugin
from sluiceway.rest.bodies import UnreadableBodyError, plugin_json, read_create_request, read_offsets

CONNECTOR = {"name": "a", "config": {"file": "/f"}}
OFFSET = {"partition": {"filename": "/f"}, "offset": {"position": 3}}


def test_a_new_connector_has_no_other_fields() -> None:
    assert read_create_request(json.dumps(CONNECTOR).encode()) == ("a", {"file": "/f"}, None)
    with pytest.raises(UnreadableBodyError, match="Unknown field 'initialState'"):
        read_create_request(json.dumps({**CONNECTOR, "initialState": "PAUSED"}).encode())


def test_an_offset_has_no_other_fields() -> None:
    assert read_offsets(json.dumps({"offsets": [OFFSET]}).encode()) == [(OFFSET["partition"], OFFSET["offset"])]
    with pytest.raises(UnreadableBodyError, match='with "partition" and "offset"'):
        read_offsets(json.dumps({"offsets": [OFFSET, {**OFFSET, "topic": "t"}]}).encode())


@pytest.mark.parametrize(("version", "shown"), [("1.2", {"version": "1.2"}), (UNDEFINED_VERSION, {})])
def test_a_plugin_without_a_version_shows_none(version: str, shown: dict[str, str]) -> None:
    assert plugin_json(InstalledPlugin("org.example.Sink", "sink", version)) == {
        "class": "org.example.Sink",
        "type": "sink",
        **shown,
    }
