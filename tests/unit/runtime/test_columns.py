from __future__ import annotations

from sluiceway.connectors.file.sink import FileStreamSinkTask
from sluiceway.connectors.file.source import FileStreamSourceTask
from sluiceway.runtime.columns import ColumnAttempts, has_columnar_form


class OwnPut(FileStreamSinkTask):
    def put(self, records: object) -> None: ...


class OwnPoll(FileStreamSourceTask):
    def poll(self) -> None: ...


def test_a_task_that_overrides_only_the_row_form_has_no_columnar_form() -> None:
    assert has_columnar_form(FileStreamSinkTask, "put_columns", "put")
    assert has_columnar_form(FileStreamSourceTask, "poll_columns", "poll")
    assert not has_columnar_form(OwnPut, "put_columns", "put")
    assert not has_columnar_form(OwnPoll, "poll_columns", "poll")


def test_columns_are_tried_less_and_less_while_they_fail() -> None:
    attempts = ColumnAttempts()
    tried = []
    for batch in range(20):
        if attempts.next():
            tried.append(batch)
            attempts.failed()
    assert tried == [0, 2, 5, 10, 19]
    attempts.succeeded()
    attempts.failed()
    assert [attempts.next() for _ in range(3)] == [False, True, True]
