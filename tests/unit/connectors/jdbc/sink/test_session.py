"""The sink's session."""

from __future__ import annotations

import pickle

import pytest

from sluiceway.connectors.jdbc.sink.config import SinkOptions
from sluiceway.connectors.jdbc.sink.session import Session, WriteError
from sluiceway.runtime.interrupts import Abandoned, Interrupted

OPTIONS = SinkOptions.of({"connection.url": "jdbc:sqlite:people.db"})


class FakeConnected:
    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("command", [Interrupted, Abandoned])
def test_an_interrupted_write_leaves_no_transaction_open(command: type[BaseException]) -> None:
    def interrupted(_: object) -> None:
        raise command

    session = Session(OPTIONS)
    session._connected = connected = FakeConnected()  # type: ignore[assignment]
    with pytest.raises(command):
        session._guarded("write a batch", interrupted)
    assert connected.closed
    assert session._connected is None


def test_a_write_error_survives_pickling() -> None:
    copy = pickle.loads(pickle.dumps(WriteError("away", unreachable=True)))  # noqa: S301
    assert (str(copy), copy.unreachable) == ("away", True)
