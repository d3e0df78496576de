from __future__ import annotations

import os
from pathlib import Path

import pytest

from sluiceway.connectors.verifiable.results import ResultFile, from_file
from sluiceway.errors import ConnectError


def test_an_incomplete_line_of_a_killed_process_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "out").write_text('{"task":1,"seqno":0,"topic":"t","partition":0}\n{"task":1,"se')
    file = ResultFile(tmp_path / "out")
    file.append([{"task": 1, "seqno": 1, "topic": "t", "partition": 0}])
    assert [seen.seqno for seen in from_file(tmp_path / "out")] == [0, 1]


def test_a_full_disk_leaves_no_part_of_a_call_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ResultFile(tmp_path / "out")
    file.append([{"seqno": 0}])
    before = (tmp_path / "out").read_bytes()
    write, writes = os.write, list[int]()

    def full(descriptor: int, data: bytes) -> int:
        writes.append(len(data))
        if len(writes) > 1:
            raise OSError(28, "No space left on device")
        return write(descriptor, bytes(data)[:10])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(ConnectError, match="No space left on device"):
            file.append([{"seqno": 1}, {"seqno": 2}])
    assert len(writes) == 2
    assert (tmp_path / "out").read_bytes() == before


def test_a_file_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match=r"Couldn't open the result file '.*/no/out': No such file or directory"):
        ResultFile(tmp_path / "no" / "out")
