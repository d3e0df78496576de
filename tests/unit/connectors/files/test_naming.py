from __future__ import annotations

import pytest

from sluiceway.connectors.files.naming import FileNames
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
