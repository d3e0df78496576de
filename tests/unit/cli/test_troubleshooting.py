"""Errors lead to the section of the page Troubleshooting that treats them, and the page quotes what Sluiceway says."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from sluiceway.cli import troubleshooting
from sluiceway.cli.main import main
from sluiceway.cli.troubleshooting import explained, section_of
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.connection_keys import ConnectionSettings
from sluiceway.connectors.jdbc.dialects import parse_url
from sluiceway.connectors.jdbc.dialects.sqlite import SqliteDialect
from sluiceway.discovery import connector_class
from sluiceway.errors import ConnectError
from sluiceway.provider.driver.outcome import NextAction, failure
from sluiceway.rest.client import ConnectClient
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.stack.ports import free_port

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / troubleshooting.PAGE).read_text(encoding="utf-8")
_ROW = re.compile(r"^\| (`[^|]*`) \|", re.MULTILINE)


def no_answer(_folder: Path, _patch: pytest.MonkeyPatch) -> None:
    ConnectClient(f"http://127.0.0.1:{free_port('127.0.0.1')}").connectors()


def class_not_found(_folder: Path, _patch: pytest.MonkeyPatch) -> None:
    connector_class("csv_source.CsvSourceConnector")


def port(folder: Path, _patch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        EmbeddedBroker(folder, port=taken.getsockname()[1]).start()


def missing_package(_folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SqliteDialect, "driver", "no_such_driver")
    Database(ConnectionSettings(parse_url("jdbc:sqlite:x"))).connect()


@pytest.mark.parametrize("make", [no_answer, class_not_found, port, missing_package])
def test_a_real_error_of_the_kind_has_its_section(
    make: Callable[[Path, pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConnectError) as raised:
        make(tmp_path, monkeypatch)
    assert section_of(str(raised.value)) == make.__name__.replace("_", "-")


def test_a_fenced_driver_has_its_section() -> None:
    assert section_of(str(failure(NextAction.FAIL_FENCED, "orders", 0))) == "fenced"


def test_each_anchor_is_on_the_page() -> None:
    anchors = {*(anchor for anchor, _ in troubleshooting._BY_TEXT), troubleshooting.UNASSIGNED, troubleshooting.FAILED}
    assert anchors <= set(re.findall(r"\{: #([\w-]+) \}", PAGE))
    assert len(anchors) == 7


@pytest.mark.parametrize("words", sorted(set(_ROW.findall(PAGE))))
def test_what_the_page_quotes_is_what_sluiceway_says(words: str) -> None:
    parts = [part.strip(" .:").lower() for part in words.strip("`").split("...")]
    if words == "`No module named 'sluiceway'`" or parts[0] == "no module named":
        return  # Python's own
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "plugin/sluiceway").rglob("*.py"))
    joined = re.sub(r'"\s*f?"', "", source).replace('\\"', '"').lower()
    assert [part for part in parts if part and part not in joined] == []


@pytest.mark.parametrize(
    ("state", "trace", "anchor"),
    [
        ("FAILED", "DataException: bad\n", "failed"),
        ("FAILED", "ModuleNotFoundError: No module named 'boto3'", "missing-package"),
        ("UNASSIGNED", "Waits for a slot: ...", "unassigned"),
        ("UNASSIGNED", "Connector c: another driver has taken over", "fenced"),
        ("RUNNING", "Waits for its database", None),
    ],
)
def test_a_status_leads_to_the_section_of_its_cause_or_state(state: str, trace: str, anchor: str | None) -> None:
    *before, last = explained({"state": state, "trace": trace}).splitlines()
    assert ([*before, last] if anchor is None else before) == [trace.rstrip()]
    assert anchor is None or last == f"See docs/how-to/troubleshoot.md#{anchor}."


def test_the_command_line_prints_the_section(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "connectors", "--server", f"http://127.0.0.1:{free_port('127.0.0.1')}"]) == 5
    assert capsys.readouterr().err.endswith("or 'sluiceway contexts use'. See docs/how-to/troubleshoot.md#no-answer.\n")
