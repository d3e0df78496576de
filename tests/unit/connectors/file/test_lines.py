from __future__ import annotations

import random

import pytest

from sluiceway.connectors.file.lines import LineSplitter


def cut(*chunks: bytes) -> list[tuple[str, int]]:
    cutter = LineSplitter()
    return [line for chunk in chunks for line in cutter.feed(chunk).split()]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"foo\nbar\n", [("foo", 4), ("bar", 8)]),
        (b"crlf\r\nx\n", [("crlf", 6), ("x", 8)]),
        (b"lone\rcr\n", [("lone", 5), ("cr", 8)]),
        (b"\n\n", [("", 1), ("", 2)]),
        (b"a\x00b\n", [("a\x00b", 4)]),
        (b"held back", []),
        (b"held\r", []),
        (b"a\rheld\r", [("a", 2)]),
        ("üü\nzwei\n".encode(), [("üü", 5), ("zwei", 10)]),
        (b"bad\xff\xfe\n", [("bad\ufffd\ufffd", 6)]),
        (b"v\x0bt\x0cff\x1cfs\xc2\x85nel\xe2\x80\xa8ls\n", [("v\x0bt\x0cff\x1cfs\x85nel\u2028ls", 20)]),
        (b"v\x0bt\x0cff\x1cfs\n", [("v\x0bt\x0cff\x1cfs", 10)]),
    ],
)
def test_lines_end_like_javas_and_positions_count_bytes(data: bytes, lines: list[tuple[str, int]]) -> None:
    assert cut(data) == lines


def test_a_carriage_return_at_the_end_is_held_back_until_the_next_byte() -> None:
    assert cut(b"a\r", b"\nb\n") == [("a", 3), ("b", 5)]
    assert cut(b"a\r", b"b\n") == [("a", 2), ("b", 4)]
    assert cut(b"a\r", b"b") == [("a", 2)]


def test_chunk_boundaries_do_not_change_the_lines() -> None:
    data = "eins\nzwei\r\ndrei\rvier\r\r\nfünf\n\n\r\nsechs\xff".encode() + b"\xff\nrest"
    whole = cut(data)
    assert [line for line, _ in whole][:5] == ["eins", "zwei", "drei", "vier", ""]
    generator = random.Random(1)  # noqa: S311 (not for secrets)
    for _ in range(300):
        places = sorted(generator.sample(range(1, len(data)), generator.randint(0, 12)))
        chunks = [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]
        assert cut(*chunks) == whole


def test_finish_returns_the_bytes_held_back_as_a_line() -> None:
    cutter = LineSplitter(position=100)
    assert cutter.feed(b"a\nrest\r").split() == [("a", 102)]
    assert cutter.held == 5
    assert cutter.finish() == b"rest\r"
    assert cutter.finish() == b""
