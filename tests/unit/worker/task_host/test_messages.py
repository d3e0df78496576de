"""Messages of a driver and its task hosts in the status topic."""

from __future__ import annotations

import pytest

from sluiceway.errors import DataError
from sluiceway.runtime.task import TaskResult
from sluiceway.storage.codec import decode_status_record
from sluiceway.storage.model import TaskId
from sluiceway.worker.task_host.messages import (
    HostedTask,
    Orders,
    Report,
    config_digest,
    decode_orders,
    decode_report,
    encode_orders,
    encode_report,
    orders_key,
    report_key,
    reporting_host,
)

TASK = HostedTask(
    "job-1", TaskId("größe", 3), 7, None, sink=True, bounded=False, config_offset=12, config_digest="ab", positions={4: 99}
)


def test_orders_and_reports_arrive_as_they_were_sent() -> None:
    orders = Orders({"job-1": TASK}, end=True)
    assert decode_orders(encode_orders(orders)) == orders
    report = Report({"job-1": 0.25}, {"job-2": TaskResult(TaskId("a", 0), 5, failed=True, trace="Traceback: ä")})
    assert decode_report(encode_report(report)) == report


@pytest.mark.parametrize("value", [b"", b"{}", b"[]", b'{"tasks": [{}], "end": false}', b"\xff"])
def test_messages_of_another_version_are_refused(value: bytes) -> None:
    with pytest.raises(DataError, match="cannot read"):
        decode_orders(value)
    with pytest.raises(DataError, match="cannot read"):
        decode_report(value)


def test_messages_are_no_statuses(caplog: pytest.LogCaptureFixture) -> None:
    assert decode_status_record(orders_key("h:1-x"), b"{}") is None
    assert decode_status_record(report_key("h:1-x"), None) is None
    assert not caplog.records, "and no unknown records, about which people would be warned"


def test_a_report_names_its_host() -> None:
    assert reporting_host(report_key("h:1-x")) == "h:1-x"
    assert reporting_host(orders_key("h:1-x")) is None


def test_a_config_has_the_same_digest_in_any_order() -> None:
    assert config_digest({"a": "1", "b": "2"}) == config_digest({"b": "2", "a": "1"})
    assert config_digest({"a": "1", "b": "2"}) != config_digest({"a": "1b", "": "2"})
