from __future__ import annotations

from dataclasses import replace

import pytest

from sluiceway.config.intervals import Interval, IntervalRun
from sluiceway.connectors.files.naming import FileNames, interval_mark, is_of_earlier_attempt
from sluiceway.errors import DataError


def test_names_are_those_of_confluents_sinks() -> None:
    hdfs, s3 = FileNames("/topics"), FileNames("bucket/topics", with_last=False)
    assert hdfs.name("t", 3, 7, 19, ".parquet") == "t+3+0000000007+0000000019.parquet"
    assert s3.name("t", 3, 7, 19, ".json.gz") == "t+3+0000000007.json.gz"
    assert hdfs.folder("t", "partition=3") == "/topics/t/partition=3"
    assert FileNames("").folder("t", "a=b") == "t/a=b"


def test_padding_delimiter_and_epoch() -> None:
    names = FileNames("/x", file_delim="_", zero_pad=3)
    assert names.name("t", 0, 7, 12345, ".avro", epoch=2) == "t_0_007_12345.e2.avro"


def test_topics_are_one_folder() -> None:
    assert FileNames("/x").folder("../../etc", "a=b") == "/x/..%2F..%2Fetc/a=b"
    with pytest.raises(DataError, match="more than 255 bytes"):
        FileNames("/x").folder("t" * 256, "a=b")


_HOUR = IntervalRun("orders", Interval(1_767_225_600_000, 1_767_229_200_000), 1)


def test_names_of_an_intervals_files_tell_its_start_its_connector_and_its_attempt() -> None:
    first = interval_mark(_HOUR)
    assert first.startswith(".20260101T000000Z-")
    assert interval_mark(replace(_HOUR, attempt=2)) == f"{first}.2"
    assert interval_mark(replace(_HOUR, interval=Interval(1_767_225_600_005, 1_767_229_200_000))).startswith(
        ".20260101T000000005Z-"
    )
    assert FileNames("d", mark=first).name("t", 0, 1, 2, ".parquet", 1) == f"t+0+0000000001+0000000002.e1{first}.parquet"


def test_files_of_other_attempts_are_told_from_those_of_other_connectors_and_intervals() -> None:
    third = replace(_HOUR, attempt=3)

    def name(run: IntervalRun) -> str:
        return f"t+0+1+2{interval_mark(run)}.parquet"

    assert is_of_earlier_attempt(name(_HOUR), third)
    assert is_of_earlier_attempt(name(replace(_HOUR, attempt=2)), third)
    assert not is_of_earlier_attempt(name(third), third)
    assert not is_of_earlier_attempt(name(replace(_HOUR, connector="other")), third)
    assert not is_of_earlier_attempt(name(replace(_HOUR, interval=Interval(5, 6))), third)
    assert not is_of_earlier_attempt("t+0+1+2.parquet", third)
