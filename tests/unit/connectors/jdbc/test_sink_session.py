from __future__ import annotations

import pytest

from sluiceway.connectors.jdbc.sink.session import Session
from sluiceway.runtime.interrupts import Abandoned, Interrupted


class FakeConnection:
    closed = False

    def invalidate(self) -> None: ...

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("command", [Interrupted, Abandoned])
def test_a_write_that_is_interrupted_leaves_no_transaction_open(command: type[BaseException]) -> None:
    def interrupted() -> None:
        raise command

    session = object.__new__(Session)
    session._connection = connection = FakeConnection()  # type: ignore[assignment]
    with pytest.raises(command):
        session._guarded("write a batch", interrupted)
    assert connection.closed
    assert session._connection is None
