from __future__ import annotations

import io

import pytest

from sluiceway.java_plugins.frames import ANSWER, ERROR, REQUEST, Frame, encode, read_frame


def test_frames_are_read_as_they_were_written() -> None:
    frames = [
        Frame(REQUEST, 1, {"method": "poll", "args": None}, b""),
        Frame(ANSWER, 2, None, b"\x00\xff" * 3),
        Frame(ERROR, -1, {"message": "é"}, b""),
    ]
    stream = io.BytesIO(b"".join(encode(*frame) for frame in frames))
    assert [read_frame(stream) for _ in frames] == frames
    assert read_frame(stream) is None


@pytest.mark.parametrize("cut", [1, 12, 15, 20])
def test_a_frame_that_was_cut_off_is_the_end(cut: int) -> None:
    data = encode(ANSWER, 1, {"a": 1}, b"body")
    assert read_frame(io.BytesIO(data[:cut])) is None


def test_the_layout_is_little_endian() -> None:
    assert encode(REQUEST, 258, [], b"x") == bytes([12, 0, 0, 0, 1, 2, 1, 0, 0, 2, 0, 0, 0]) + b"[]x"
