"""A receiver's messages, and the parameters that it refuses. The rest runs on a real server: tests/cdc."""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, cast

import pytest

from sluiceway.connectors.cdc.postgres.receiver import Received, available_messages, check_parameters
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn


@pytest.mark.parametrize("parameter", [("streaming", "on"), ("binary", "true"), ("proto_version", "2")])
def test_other_forms_of_messages_are_refused(parameter: tuple[str, str]) -> None:
    check_parameters({"proto_version": "1", "streaming": "off", "publication_names": "p"})
    with pytest.raises(ConnectError, match=f"{parameter[0]}={parameter[1]} is not supported"):
        check_parameters(dict([parameter]))


class _Log:
    """A replication connection on which these messages have arrived."""

    def __init__(self, *messages: bytes, ended: bool = False) -> None:
        self._messages = deque(messages)
        self._ended = ended

    def get_copy_data(self, _nowait: int) -> tuple[int, memoryview | None]:
        if self._messages:
            data = self._messages.popleft()
            return len(data), memoryview(data)
        return (-1 if self._ended else 0), None


def _data(lsn: int, content: bytes) -> bytes:
    return b"w" + struct.pack(">qqq", lsn, 0, 0) + content


def _keepalive(lsn: int, *, urgent: bool = False) -> bytes:
    return b"k" + struct.pack(">qq?", lsn, 0, urgent)


def _available(*messages: bytes, ended: bool = False) -> tuple[list[Received], bool]:
    return available_messages(cast("PGconn", _Log(*messages, ended=ended)))


def test_messages_that_have_arrived_are_taken_together() -> None:
    found, ended = _available(_data(1, b"a"), _keepalive(2), _data(3, b"b"), ended=True)
    assert found == [Received(1, b"a"), Received(2, b""), Received(3, b"b")]
    assert ended


def test_of_successive_keepalives_the_last_position_and_any_question_count() -> None:
    found, ended = _available(_keepalive(1, urgent=True), _keepalive(2), _data(3, b"b"), _keepalive(4))
    assert found == [Received(2, b"", urgent=True), Received(3, b"b"), Received(4, b"")]
    assert not ended


def test_large_messages_are_taken_a_few_at_a_time() -> None:
    found, _ = _available(*(_data(lsn, b"x" * 600_000) for lsn in range(5)))
    assert len(found) == 2
    assert len(_available(*(_data(lsn, b"x") for lsn in range(1000)))[0]) == 256
