"""Tests the reading of a tap's messages: which state is safe after which record, and what is no message."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.singer.config import options_of
from sluiceway.connectors.singer.messages import is_empty, resumable
from sluiceway.connectors.singer.run import Batch, Progress, Reader
from sluiceway.errors import ConnectError
from support.column_forms import many


def reader(state: str | None = None, **config: str) -> Reader:
    given_config = {key.replace("_", "."): value for key, value in config.items()}
    made = Reader(options_of({"singer.tap": "tap-x", **given_config}), state)
    made.begin()
    return made


def schema(stream: str = "a", keys: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    given_properties = properties or {"n": {"type": "integer"}}
    return {"type": "SCHEMA", "stream": stream, "schema": {"properties": given_properties}, "key_properties": list(keys)}


def record(number: int, stream: str = "a", **more: Any) -> dict[str, Any]:
    return {"type": "RECORD", "stream": stream, "record": {"n": number}, **more}


def state(number: int) -> dict[str, Any]:
    return {"type": "STATE", "value": {"n": number}}


def chunk(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in messages)


def read(made: Reader, *chunks: bytes) -> list[Batch | Progress]:
    return [*made.read(iter(chunks)), *made.last()]


def numbers(batch: Batch | Progress) -> list[int]:
    assert isinstance(batch, Batch)
    return [batch.table.row(line)[0]["n"] for line in batch.lines]


def test_the_last_record_before_a_state_has_it_and_the_others_the_one_before() -> None:
    made = reader()
    first, second = read(made, chunk(schema(), record(1), record(2), state(2)), chunk(record(3), state(3), record(4)))
    assert isinstance(first, Batch)
    assert isinstance(second, Batch)
    assert (numbers(first), first.before, first.after) == ([1, 2], None, '{"n": 2}')
    assert (numbers(second), second.before, second.after) == ([3, 4], '{"n": 2}', '{"n": 3}')


def test_a_state_without_records_is_progress() -> None:
    assert read(reader('{"n": 1}'), chunk(state(1)), chunk(state(2)), chunk(schema())) == [Progress('{"n": 2}')]


@pytest.mark.parametrize(
    "empty",
    [{}, None, {"bookmarks": {}}, {"bookmarks": {"a": {}}, "currently_syncing": None}, {"a": [""]}, {"currently_syncing": "a"}],
)
def test_an_empty_state_does_not_replace_another(empty: Any) -> None:
    made = reader('{"n": 1}')
    [batch] = read(made, chunk(schema(), record(1), {"type": "STATE", "value": empty}))
    assert isinstance(batch, Batch)
    assert (batch.before, batch.after, made.state) == ('{"n": 1}', '{"n": 1}', '{"n": 1}')
    assert is_empty(empty)


@pytest.mark.parametrize("full", [{"a": 0}, {"a": False}, {"bookmarks": {"a": {"b": [1]}}}, "x"])
def test_a_state_with_a_value_is_not_empty(full: Any) -> None:
    assert not is_empty(full)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ('{"currently_syncing": "a"}', "{}"),
        ('{"currently_syncing": "a", "bookmarks": {"b": {"x": 1.50}}}', '{"bookmarks":{"b": {"x": 1.50}}}'),
        ('{"bookmarks": {"a": {}}, "currently_syncing": "a"}', '{"bookmarks":{"a": {}}}'),
        ('{"currently_syncing": "a", "bookmarks": {"a": {"x": 1}}}', None),
        ('{"currently_syncing": null, "bookmarks": {"a": {}}}', None),
        ('{"bookmarks": {"a": {"x": 12345678901234567.890}}}', None),
        ('{"currently_syncing": "a", "bookmarks": []}', '{"bookmarks":[]}'),
    ],
)
def test_a_stream_without_a_bookmark_is_not_what_a_tap_begins_with(state: str, expected: str | None) -> None:
    assert resumable(state) == (state if expected is None else expected)


def test_numbers_of_states_stay_as_they_are() -> None:
    made = reader()
    read(made, b'{"type":"STATE","value":{"n":12345678901234567.890,"big":123456789012345678901234567890}}\n')
    assert made.state == '{"n":12345678901234567.890,"big":123456789012345678901234567890}'


def test_streams_that_alternate_are_a_batch_each() -> None:
    messages = [schema("a"), schema("b"), *(record(number, "ab"[number % 2]) for number in range(10)), state(9)]
    first, second = read(reader("{}"), chunk(*messages))
    assert (numbers(first), numbers(second)) == ([0, 2, 4, 6, 8], [1, 3, 5, 7, 9])
    assert isinstance(first, Batch)
    assert isinstance(second, Batch)
    assert (first.table.topic, second.table.topic) == ("a", "b")
    assert (first.after, second.before, second.after) == ("{}", "{}", '{"n": 9}')


def test_a_changed_schema_ends_a_batch_and_a_repeated_one_does_not() -> None:
    changed = schema(n={"type": "integer"}, m={"type": "string"})
    first, second = read(reader(), chunk(schema(), record(1), schema(), record(2), changed, record(3)))
    assert (numbers(first), numbers(second)) == ([1, 2], [3])
    assert isinstance(second, Batch)
    assert [field.name for field in second.table.layout.schema.fields] == ["n", "m"]


def test_a_new_run_sends_its_schemas_again() -> None:
    made = reader()
    read(made, chunk(schema(), record(1)))
    made.begin()
    with pytest.raises(ConnectError, match="a RECORD of stream a before its SCHEMA"):
        read(made, chunk(record(2)))


def test_metadata_of_records_are_fields_if_wanted() -> None:
    message = record(1, time_extracted="2026-01-01T00:00:00.5Z", version=1700000000000)
    [batch] = read(reader(singer_add_record_metadata="true", singer_timestamps="string"), chunk(schema(), message))
    assert isinstance(batch, Batch)
    assert batch.table.row(batch.lines[0])[0].values_ == [1, "2026-01-01T00:00:00.5Z", 1700000000000]


def test_activated_versions_are_counted() -> None:
    made = reader()
    assert read(made, chunk({"type": "ACTIVATE_VERSION", "stream": "a", "version": 1700000000000})) == []
    assert made.versions == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"Hello SECRET", "a line of 12 bytes that is no Singer message"),
        (b'{"type": "RECORD", "stream": "SECRET"', "no Singer message"),
        (b'{"stream": "SECRET"}', "no Singer message"),
        (b"[]", "no Singer message"),
        (b'{"type": "OTHER"}', "unknown type 'OTHER'"),
        (b'{"type": "RECORD", "stream": "b", "record": {"x": "SECRET"}}', "a RECORD of stream b before its SCHEMA"),
        (b'{"type": "SCHEMA", "stream": "b", "schema": {}}', "no properties"),
        (b'{"type": "SCHEMA", "stream": "b", "schema": {"properties": {}}, "key_properties": ["SECRET1"]}', "key of stream b"),
        (b'{"type": "BATCH", "stream": "a", "encoding": {"format": "parquet"}, "manifest": []}', "in the format parquet"),
        (b'{"type": "BATCH", "stream": "a", "encoding": {"format": "jsonl", "compression": "zstd"}}', "compression zstd"),
        (b'{"type": "BATCH", "stream": "a", "encoding": {"format": "jsonl"}, "manifest": ["s3://bucket/a"]}', "s3://bucket"),
        (b'{"type": "BATCH", "stream": "a", "encoding": {"format": "jsonl"}, "manifest": ["file:///none/a"]}', "cannot be read"),
    ],
)
def test_what_is_no_message_fails_without_its_data(line: bytes, reason: str) -> None:
    with pytest.raises(ConnectError, match=reason) as found:
        read(reader(), chunk(schema()) + line + b"\n")
    assert "SECRET" not in str(found.value).replace("SECRET1", "")


def test_what_python_writes_for_numbers_that_json_lacks_is_a_message() -> None:
    line = b'{"type": "RECORD", "stream": "a", "record": {"n": 1, "x": NaN}}\n'
    [batch] = read(reader(), chunk(schema(x={"type": "number"}, n={"type": "integer"})) + line)
    assert numbers(batch) == [1]


def test_blank_lines_and_a_last_line_without_newline_are_read() -> None:
    [first, second] = read(reader(), chunk(schema(), record(1)) + b"\n \n" + chunk(record(2), state(2), record(3))[:-1])
    assert (numbers(first), numbers(second)) == ([1, 2], [3])


def test_two_streams_with_one_topic_are_refused() -> None:
    with pytest.raises(ConnectError, match="The streams a b and a:b would both go to the topic shop-a_b"):
        read(reader(topic_prefix="shop-"), chunk(schema("a b"), schema("a:b")))


@pytest.mark.parametrize("compression", ["gzip", "none", None])
def test_batch_files_are_read_in_their_place(tmp_path: Path, compression: str | None) -> None:
    files = []
    for number in range(2):
        data = b"".join(b'{"n": %d}\n' % (10 * number + each) for each in range(3))
        files.append(tmp_path / f"file {number}.jsonl")
        files[-1].write_bytes(gzip.compress(data) if compression == "gzip" else data)
    message = {
        "type": "BATCH",
        "stream": "a",
        "encoding": {"format": "jsonl", "compression": compression},
        "manifest": [files[0].as_uri(), str(files[1])],
    }
    made = reader()
    found = read(made, chunk(schema(), state(1), record(99), message, state(2)))
    assert [numbers(each) for each in found[:3]] == [[99], [0, 1, 2], [10, 11, 12]]
    assert [each.file for each in found[:3] if isinstance(each, Batch)] == [None, *files]
    assert [each.after for each in found[:3] if isinstance(each, Batch)] == [None] * 3
    assert found[3:] == [Progress('{"n": 2}')]
    assert made.records == 7


MESSAGES = st.lists(
    st.one_of(st.just("record a"), st.just("record b"), st.just("state"), st.just("schema a"), st.just("other schema b")),
    max_size=40,
)


@many
@given(MESSAGES, st.randoms(use_true_random=False), st.booleans())
def test_no_state_is_ahead_of_a_record_however_the_output_is_cut(kinds: list[str], dice: random.Random, known: bool) -> None:
    """A state has the number of records before it: whatever prefix of the batches is in Kafka, its offset covers no more."""
    messages, count, expected = [schema("a"), schema("b")], 0, []
    for kind in kinds:
        if kind.startswith("record"):
            messages.append(record(count, kind[-1]))
            expected.append((kind[-1], count))
            count += 1
        elif kind == "state":
            messages.append(state(count))
        else:
            messages.append(schema(kind[-1], n={"type": "integer"}, m={}) if kind.startswith("other") else schema(kind[-1]))
    data = chunk(*messages)
    cuts = sorted(dice.randrange(len(data) + 1) for _ in range(dice.randrange(6)))
    pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    made = reader('{"n": 0}' if known else None)
    delivered: set[int] = set()
    order: list[tuple[str, int]] = []
    for item in read(made, *pieces):
        for offset, covered in offsets(item):
            delivered |= {number for _, number in covered}
            order += covered
            assert set(range(offset)) <= delivered
        if isinstance(item, Progress):
            assert set(range(json.loads(item.state or '{"n": 0}')["n"])) <= delivered
    for stream in "ab":  # each stream's records are in order, once
        assert [number for each, number in order if each == stream] == [number for each, number in expected if each == stream]
    states = [index for index, each in enumerate(messages) if each["type"] == "STATE"]
    if states:
        assert made.state == json.dumps(messages[states[-1]]["value"])


def offsets(item: Batch | Progress) -> Iterator[tuple[int, list[tuple[str, int]]]]:
    """Yield the number in the offset of each record of a batch, with the record."""
    if isinstance(item, Progress):
        return
    found = numbers(item)
    for position, number in enumerate(found):
        text = item.after if position == len(found) - 1 else item.before
        yield (json.loads(text)["n"] if text else 0), [(item.table.layout.stream, number)]
