"""The watch of Redis' streams on a real Redis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from redis import Redis

from sluiceway.connectors.redis import RedisStreamSourceConnector
from sluiceway.errors import ConnectError
from support.redis_server import RedisServer


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with closing(RedisServer()) as server:
        server.start()
        yield server


def test_entries_change_the_mark_and_nothing_else_does(server: RedisServer, unique: Callable[[str], str]) -> None:
    one, other = unique("stream"), unique("stream")
    config = {"redis.uri": server.url, "redis.stream.name": f"{one},{other}"}
    with closing(RedisStreamSourceConnector.watch(config)) as watch, closing(Redis.from_url(server.url)) as client:
        marks = [watch.mark()]
        assert marks == ["- -"]
        for stream in (one, other, one):
            client.xadd(stream, {"n": 1})
            marks.append(watch.mark())
        assert len(set(marks)) == 4, marks
        client.xread({one: "0"})
        client.xtrim(one, 0)
        client.xadd(unique("stream"), {"n": 1})
        assert watch.mark() == marks[-1]
        client.client_kill_filter(_type="normal", skipme=True)
        assert watch.mark() == marks[-1], "a connection that was lost is opened again"
        client.set("text", "x")
    with (
        closing(RedisStreamSourceConnector.watch({**config, "redis.stream.name": "text"})) as watch,
        pytest.raises(ConnectError, match="is no stream"),
    ):
        watch.mark()
