from __future__ import annotations

import pytest

from sluiceway.converters.json_converter import JsonConverter
from sluiceway.converters.string_converter import StringConverter
from sluiceway.errors import DataError
from unit.connectors.mock.tasks import source


@pytest.mark.parametrize("converter", [JsonConverter, StringConverter])
def test_no_converter_can_write_a_bad_record(converter: type[JsonConverter] | type[StringConverter]) -> None:
    good, bad = source(bad_records_share="0.5", batch_size="2").poll() or ()
    made = converter()
    made.configure({}, is_key=False)
    assert made.from_connect_data("t", good.value_schema, good.value)
    with pytest.raises(DataError):
        made.from_connect_data("t", bad.value_schema, bad.value)
    assert bad.source_offset == {"seqno": 1}


def test_a_source_without_a_topic_sends_no_records() -> None:
    assert source(topic="").poll() is None
