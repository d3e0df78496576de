"""Tests the task with a tap in a process of its own: runs, states, exit codes, secrets, and ends."""

from __future__ import annotations

import json
import logging
import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import SourceColumns, SourceRecord
from sluiceway.connectors.singer import SingerSourceConnector, process
from sluiceway.connectors.singer.source import SingerSourceTask
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.runtime.memory import MemoryOffsets, MemorySourceContext
from sluiceway.testing import SourceConnectorContract
from support.eventually import eventually
from support.singer_taps import FAKE_TAP, PARTITION, fake_config, is_running, started, stored

ORDERS = {"orders": {"rows": 10}}


class TestSingerSource(SourceConnectorContract):
    connector_class = SingerSourceConnector
    record_count = 30
    resumable = False  # the tap reads again from its state, whose own record comes again

    @pytest.fixture
    def config(self) -> dict[str, str]:
        return fake_config({"streams": {"orders": {"rows": 30}}, "state_every": 10}, poll_interval_ms="600000")


def ids(records: list[SourceRecord]) -> list[int]:
    return [record.value["id"] for record in records]


def read(task: SingerSourceTask, count: int) -> list[SourceRecord]:
    records: list[SourceRecord] = []

    def enough() -> bool:
        records.extend(task.poll() or ())
        return len(records) >= count

    eventually(enough)
    return records


def run_once(config: dict[str, str], offsets: MemoryOffsets) -> list[SourceRecord]:
    """Run the tap once as a bounded run does, and store what a delivery would."""
    records: list[SourceRecord] = []
    with started(config, offsets) as task:

        def ended() -> bool:
            polled = list(task.poll() or ())
            records.extend(polled)
            offsets.store_all(polled)
            if not polled:
                for partition, offset in task.idle_offsets():
                    offsets.store(partition, offset)
            return task.ended is True

        eventually(ended)
        task.commit()
    return records


def test_a_run_continues_from_the_state_of_the_last_one() -> None:
    offsets = MemoryOffsets()
    tap = {"streams": ORDERS, "final": True}
    assert ids(run_once(fake_config(tap), offsets)) == list(range(10))
    assert stored(offsets) == {"bookmarks": {"orders": {"id": 9}}}
    assert ids(run_once(fake_config({**tap, "streams": {"orders": {"rows": 12}}}), offsets)) == [9, 10, 11]
    assert stored(offsets) == {"bookmarks": {"orders": {"id": 11}}}


def test_a_state_after_all_records_is_stored_while_idle() -> None:
    offsets = MemoryOffsets([(PARTITION, {"state": '{"bookmarks": {"orders": {"id": 9}}}'})])
    tap = {"streams": {"z": {"rows": 0}}, "script": ['{"type": "STATE", "value": {"bookmarks": {"orders": {"id": 5}}}}']}
    with started(fake_config(tap), offsets) as task:
        eventually(lambda: task.poll() is None and task.ended)
        assert task.idle_offsets() == [(PARTITION, {"state": '{"bookmarks": {"orders": {"id": 5}}}'})]
        assert task.idle_offsets() == ()


def test_a_run_without_a_state_stores_nothing() -> None:
    offsets = MemoryOffsets()
    records = run_once(fake_config({"streams": ORDERS}), offsets)
    assert len(records) == 10
    assert {(record.source_partition, record.source_offset) for record in records} == {(None, None)}
    assert not offsets.all()


def test_an_empty_state_leaves_the_stored_one() -> None:
    full = {"bookmarks": {"orders": {"id": 3}}}
    offsets = MemoryOffsets([(PARTITION, {"state": json.dumps(full)})])
    script = ['{"type": "STATE", "value": {}}', '{"type": "STATE", "value": {"bookmarks": {}}}']
    records = run_once(fake_config({"streams": ORDERS, "script": script}), offsets)
    assert ids(records) == list(range(3, 10))
    assert stored(offsets) == full


def test_another_exit_code_fails_with_the_taps_last_lines_and_keeps_the_last_state() -> None:
    offsets = MemoryOffsets()
    config = fake_config({"streams": ORDERS, "state_every": 4, "exit": 3})
    with started(config, offsets) as task:
        offsets.store_all(read(task, 10))
        with pytest.raises(ConnectError, match=r"fake_tap.py ended with exit code 3. Its last lines:\nINFO starts with state {}"):
            eventually(lambda: task.poll() is not None)
        assert task.ended is False
    assert stored(offsets) == {"bookmarks": {"orders": {"id": 7}}}


def test_a_line_that_a_kill_has_cut_off_is_not_what_the_error_is_about() -> None:
    config = fake_config({"streams": ORDERS, "exit": 1, "cut": '{"type": "RECORD", "str'})
    with started(config) as task, pytest.raises(ConnectError, match="ended with exit code 1"):
        eventually(lambda: task.poll() is None and False, within=30)


def test_the_tap_runs_again_after_the_interval() -> None:
    with started(fake_config({"streams": ORDERS})) as task:
        records = read(task, 30)
    assert ids(records)[:30] == [*range(10)] * 3
    assert task.metrics()["runs"] >= 2


def test_records_are_columns_if_they_are_many() -> None:
    with started(fake_config({"streams": {"orders": {"rows": 1000}}, "final": True})) as task:
        found: list[Any] = []

        def polled() -> bool:
            batch = task.poll_columns()
            found.extend([batch] if batch else [])
            return task.ended is True

        eventually(polled)
    columns = [each for each in found if isinstance(each, SourceColumns)]
    assert sum(map(len, columns)) >= 800
    assert sum(map(len, found)) % 1000 == 0
    rows = columns[0].records()
    assert len(rows) == len(columns[0])
    assert rows[-1].source_offset == columns[0].source_offset


def test_bad_records_are_reported_and_the_state_after_them_is_stored() -> None:
    rows: list[dict[str, Any]] = [{"id": 0}, {"id": 1}, {"id": "SECRET"}]
    offsets = MemoryOffsets()
    script = [
        json.dumps(
            {"type": "SCHEMA", "stream": "a", "schema": {"properties": {"id": {"type": "integer"}}}, "key_properties": []}
        ),
        *(json.dumps({"type": "RECORD", "stream": "a", "record": row}) for row in rows),
        json.dumps({"type": "STATE", "value": {"n": 1}}),
    ]
    config = fake_config({"streams": {"z": {"rows": 0}}, "script": script}, errors_tolerance="all")
    assert ids(run_once(config, offsets)) == [0, 1]
    assert stored(offsets) == {"n": 1}
    with (
        started({**config, "errors.tolerance": "none"}) as task,
        pytest.raises(ConnectError, match="the field id has a string") as found,
    ):
        read(task, 3)
    assert "SECRET" not in str(found.value)


def test_batch_files_are_removed_once_kafka_has_their_records(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"id": 1}\n{"id": 2}\n')
    script = [
        json.dumps({"type": "SCHEMA", "stream": "a", "schema": {"properties": {"id": {"type": "integer"}}}}),
        json.dumps({"type": "BATCH", "stream": "a", "encoding": {"format": "jsonl"}, "manifest": [file.as_uri()]}),
    ]
    config = fake_config({"streams": {"z": {"rows": 0}}, "script": script}, poll_interval_ms="600000")
    with started(config) as task:
        assert ids(read(task, 2)) == [1, 2]
        assert file.exists()
        task.commit()
        assert not file.exists()


def test_only_what_is_selected_is_read() -> None:
    tap = {"streams": {"orders": {"rows": 3}, "other": {"rows": 3}}}
    records = run_once(fake_config(tap, singer_select="other.*", topic_prefix="shop."), MemoryOffsets())
    assert [record.topic for record in records] == ["shop.other"] * 3
    assert [record.key["id"] for record in records] == [0, 1, 2]


@pytest.mark.parametrize("option", ["properties", "none"])
def test_the_catalog_is_given_as_the_tap_wants_it(option: str) -> None:
    config = fake_config({"streams": ORDERS}, singer_catalog_option=option)
    assert len(run_once(config, MemoryOffsets())) == (10 if option == "properties" else 0)


@pytest.mark.parametrize("as_file", [True, False])
def test_a_given_catalog_is_used(tmp_path: Path, as_file: bool) -> None:
    catalog = json.dumps({"streams": [{"tap_stream_id": "orders", "stream": "orders", "schema": {}}]})
    (tmp_path / "catalog.json").write_text(catalog)
    given = str(tmp_path / "catalog.json") if as_file else catalog
    config = fake_config({"streams": ORDERS, "discover_exit": 1}, singer_catalog=given)
    assert len(run_once(config, MemoryOffsets())) == 10


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (fake_config({"streams": ORDERS, "discover_exit": 2}), "fake_tap.py --discover ended with exit code 2"),
        (fake_config({"streams": ORDERS}, singer_tap="/bin/echo"), "--discover has printed no JSON"),
        (fake_config({"streams": ORDERS}, singer_tap="/none/tap"), "/none/tap is no program on this machine"),
        (fake_config({"streams": ORDERS}, singer_tap="tap-none"), "sluiceway plugins install singer:tap-none"),
        (fake_config({"streams": ORDERS}, singer_catalog="/none/catalog.json"), "singer.catalog: cannot be read"),
        (fake_config({"streams": ORDERS}, singer_select="none.*"), "selects no stream. The tap has these: orders"),
    ],
)
def test_what_keeps_a_tap_from_running_fails_the_task(config: dict[str, str], reason: str) -> None:
    with started(config) as task, pytest.raises(ConnectError, match=reason):
        eventually(lambda: task.poll() is None and False, within=30)


def test_settings_with_secrets_are_in_private_files_and_not_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    tap = tmp_path / "tap"
    tap.write_text(
        f'#!/bin/sh\necho "$@" >{tmp_path}/arguments\ncp -r "$(dirname $2)" {tmp_path}/files\nenv >{tmp_path}/env\n'
        f"stat -c %a $2 $(dirname $2) >{tmp_path}/modes\ncat $2 >&2\nexit 1\n"
    )
    tap.chmod(0o755)
    config = fake_config({"password": "SECRET1", "nested": {"token": "SECRET2"}}, singer_catalog_option="none")
    config |= {"singer.tap": str(tap), "singer.config.api_key": "SECRET3", "singer.config.host": "db"}
    with started(config) as task, pytest.raises(ConnectError, match="exit code 1") as found:
        eventually(lambda: task.poll() is None and False, within=30)
    assert "SECRET" not in str(found.value)
    assert "SECRET" not in caplog.text
    assert '"host": "db"' in caplog.text
    settings = {"password": "SECRET1", "nested": {"token": "SECRET2"}, "api_key": "SECRET3", "host": "db"}
    assert json.loads((tmp_path / "files" / "config.json").read_text()) == settings
    assert (tmp_path / "modes").read_text().split() == ["600", "700"]
    assert "SECRET" not in (tmp_path / "arguments").read_text()
    environment = (tmp_path / "env").read_text()
    assert "PATH=" in environment
    assert "PYTHONPATH" not in environment


def sleeping_tap(folder: Path, trap: str = "") -> Path:
    """Write a tap that writes its process id, and then prints nothing."""
    tap = folder / "tap"
    tap.write_text(
        f"#!/bin/sh\n{trap}\necho $$ >{folder}/pid.new\nmv {folder}/pid.new {folder}/pid\nwhile :; do sleep 0.1; done\n"
    )
    tap.chmod(tap.stat().st_mode | stat.S_IXUSR)
    return tap


@pytest.mark.parametrize("trap", ["", "trap '' TERM"], ids=["SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("option", ["none", "catalog"], ids=["run", "discovery"])
def test_a_tap_that_prints_nothing_ends_with_its_task(
    tmp_path: Path, trap: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_STOP_SECONDS", 0.5)
    config = fake_config({}, singer_tap=str(sleeping_tap(tmp_path, trap)), singer_catalog_option=option)
    with started(config) as task:
        eventually((tmp_path / "pid").exists)
        assert task.poll() is None
        pid = int((tmp_path / "pid").read_text())
        assert is_running(pid)
    assert not is_running(pid)


def test_a_tap_that_somebody_kills_fails_the_task(tmp_path: Path) -> None:
    config = fake_config({}, singer_tap=str(sleeping_tap(tmp_path)), singer_catalog_option="none")
    with started(config) as task:
        eventually((tmp_path / "pid").exists)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        with pytest.raises(ConnectError, match="tap ended with signal SIGKILL"):
            eventually(lambda: task.poll() is None and False, within=30)


@pytest.mark.parametrize("offset", [{}, {"state": 1}, {"state": "x"}, {"state": "[]"}, {"state": "{}", "other": 1}])
def test_an_offset_that_is_none_is_refused(offset: dict[str, Any]) -> None:
    connector, config = SingerSourceConnector(), fake_config({})
    with pytest.raises(ConnectError, match="is no offset of a tap"):
        connector.alter_offsets(config, [(PARTITION, offset)])
    with pytest.raises(ConnectError, match="is no offset of a tap"), started(config, MemoryOffsets([(PARTITION, offset)])):
        pass


def test_offsets_of_the_tap_may_be_set() -> None:
    connector, config = SingerSourceConnector(), fake_config({})
    assert connector.alter_offsets(config, [(PARTITION, {"state": '{"bookmarks": {}}'}), ({"x": 1}, None)])
    with pytest.raises(ConnectError, match=r'The partition of this connector is {"tap": "fake_tap\.py"}'):
        connector.alter_offsets(config, [({"tap": "tap-other"}, {"state": "{}"})])


def test_a_validation_asks_the_tap_for_its_streams() -> None:
    tap = {"streams": {"orders": {"rows": 3}, "shop.items": {"rows": 3}}}
    found = SingerSourceConnector.validate(fake_config(tap))
    assert found["singer.select"].recommended_values == ["orders.*", "shop\\.items.*"]
    assert not any(each.errors for each in found.values())
    found = SingerSourceConnector.validate(fake_config(tap, singer_select="none"))
    assert "The tap has these: orders, shop.items" in found["singer.select"].errors[0]
    found = SingerSourceConnector.validate(fake_config({**tap, "discover_exit": 1}))
    assert "--discover ended with exit code 1" in found["singer.config"].errors[0]


@pytest.mark.parametrize("more", [{"singer_tap": "tap-none"}, {"singer_catalog_option": "none", "singer_tap": "/none"}])
def test_a_tap_that_is_not_on_this_machine_is_no_error(more: dict[str, str]) -> None:
    assert not any(each.errors for each in SingerSourceConnector.validate(fake_config({}, **more)).values())


def test_a_validation_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluiceway.connectors.singer.source._VALIDATE_SECONDS", 0.2)
    found = SingerSourceConnector.validate(fake_config({}, singer_tap=str(sleeping_tap(tmp_path))))
    assert not any(each.errors for each in found.values())
    assert found["singer.select"].recommended_values == []


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"singer.config": "SECRET"}, "singer.config"),
        ({"singer.config": "[]"}, "singer.config"),
        ({"singer.metadata": '{"a": 1}'}, "singer.metadata"),
        ({"singer.catalog": "{SECRET"}, "singer.catalog"),
        ({"singer.catalog.option": "none", "singer.select": "a"}, "singer.select"),
        ({"singer.catalog.option": "none", "singer.metadata": '{"a": {}}'}, "singer.metadata"),
        ({"singer.catalog.option": "none", "singer.catalog": "{}"}, "singer.catalog"),
        ({"singer.python": "3.11"}, "singer.python"),
        ({"singer.tap": ""}, "singer.tap"),
        ({"singer.timestamps": "nanoseconds"}, "singer.timestamps"),
        ({"topic.prefix": "a b"}, "topic.prefix"),
    ],
)
def test_a_bad_config_is_refused_by_its_key(config: dict[str, str], key: str) -> None:
    given = {**fake_config({}), **config}
    found = SingerSourceConnector.check(given)
    assert [name for name, each in found.items() if each.errors] == [key]
    assert "SECRET" not in str(found[key].errors)
    with pytest.raises(ConfigError, match=key):
        SingerSourceConnector().start(given)


def test_references_are_no_errors_before_they_are_resolved() -> None:
    given = fake_config({}, singer_config='{"port": ${env:PORT}}')
    assert not any(each.errors for each in SingerSourceConnector.check(given).values())


@pytest.mark.parametrize(("settings", "effect"), [({}, ""), ({"batch_config": {}}, "the tap writes files of its batch_config")])
def test_files_of_batches_are_an_effect(settings: dict[str, Any], effect: str) -> None:
    assert SingerSourceConnector.start_effects(fake_config(settings)) == effect


def test_the_context_of_a_task_without_a_start_can_stop() -> None:
    task = SingerSourceTask()
    task.initialize(MemorySourceContext())
    task.stop()
    assert task.metrics() == {}
    assert FAKE_TAP.exists()
