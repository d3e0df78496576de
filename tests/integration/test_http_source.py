"""HttpSource and a real server: pages, cursors, offsets, and servers in trouble."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sluiceway.api import ExactlyOnceSupport, SourceRecord
from sluiceway.connectors.http import HttpSourceConnector
from sluiceway.data import BYTES_SCHEMA, STRING_SCHEMA
from sluiceway.errors import ConnectError
from sluiceway.runtime.memory import MemoryOffsets
from sluiceway.testing import SourceConnectorContract
from sluiceway.testing.running import RunningSource
from support.eventually import LIMIT, eventually
from support.http_server import RESET, Answer, HttpServer, ItemList, Request, TokenServer

OFFSETS = "key=/id, timestamp=/updated, id=/id"
PAGINGS = {
    "none": {},
    "page": {"http.paging": "page", "http.request.params": "page=${page.number}&since=${offset.timestamp}"},
    "offset": {"http.paging": "offset", "http.request.params": "offset=${page.offset}&since=${offset.timestamp}"},
    "cursor": {
        "http.paging": "cursor",
        "http.paging.pointer": "/next",
        "http.request.params": "cursor=${page.cursor}&since=${offset.timestamp}",
    },
    "next": {"http.paging": "next", "http.paging.pointer": "/next", "http.request.params": "since=${offset.timestamp}"},
    "link": {"http.paging": "link", "http.request.params": "since=${offset.timestamp}"},
}


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer(ItemList()) as server:
        yield server


class Source:
    """A source without Kafka, whose offsets are stored as the runtime does."""

    def __init__(self, url: str, **more: str) -> None:
        self.config = {
            "http.request.url": url,
            "http.response.list.pointer": "/items",
            "http.response.record.offset.pointer": OFFSETS,
            "kafka.topic": "t",
            "retry.backoff.ms": "1",
            **more,
        }
        self.offsets = MemoryOffsets()

    def run(self) -> list[SourceRecord]:
        """Read once, from the stored offset on, and store the offset."""
        found: list[SourceRecord] = []
        with RunningSource(HttpSourceConnector, self.config, offsets=self.offsets) as source:

            def over() -> bool:
                records = source.poll()
                found.extend(records)
                source.acknowledge(records)
                if not records:
                    for partition, offset in source.call(source.tasks[0].idle_offsets):
                        self.offsets.store(partition, offset)
                return bool(source.tasks[0].ended)

            eventually(over, what="the end of a run")
        return found

    @property
    def offset(self) -> Any:
        connector = HttpSourceConnector()
        connector.start(self.config)
        return self.offsets.offset({"url": self.config["http.request.url"].partition("?")[0]})


def ids(records: list[SourceRecord]) -> list[int]:
    return [each.value["id"] for each in records]


@pytest.mark.parametrize("direction", ["ASC", "IMPLICIT"])
@pytest.mark.parametrize("paging", PAGINGS)
def test_each_item_is_read_once(server: HttpServer, paging: str, direction: str) -> None:
    server.work = items = ItemList(25)
    source = Source(f"{server.url}/{paging}", **{"http.response.list.order.direction": direction}, **PAGINGS[paging])
    assert ids(source.run()) == list(range(25))
    assert source.run() == []
    items.add(12)
    assert ids(source.run()) == list(range(25, 37))
    assert source.offset["timestamp"] == items.items[-1]["updated"]
    assert source.offset["id"] == 36


def test_records_have_keys_and_times(server: HttpServer) -> None:
    server.work = ItemList(4)
    record = Source(f"{server.url}/none").run()[3]
    assert (record.topic, record.key, record.key_schema, record.value_schema) == ("t", "3", STRING_SCHEMA, None)
    assert record.value == {"id": 3, "updated": "2026-01-01T00:00:01Z"}
    assert record.timestamp == 1767225601000
    text = Source(f"{server.url}/none", **{"http.response.values": "string", "http.response.record.pointer": "/updated"}).run()
    assert (text[3].value, text[3].value_schema) == ('"2026-01-01T00:00:01Z"', STRING_SCHEMA)


def test_whole_answers(server: HttpServer) -> None:
    server.work = lambda _request: Answer(body=b"\xff\n")
    own = {"http.response.values": "body", "http.response.list.pointer": "", "http.response.record.offset.pointer": ""}
    record = Source(f"{server.url}/x", **own).run()[0]
    assert (record.value, record.value_schema) == (b"\xff\n", BYTES_SCHEMA)


def killed_after(source: Source, pages: int) -> list[SourceRecord]:
    """Read some pages, whose records and offsets Kafka has, and stop."""
    found: list[SourceRecord] = []
    with RunningSource(HttpSourceConnector, source.config, offsets=source.offsets) as running:
        while pages:
            records = running.poll()
            running.acknowledge(records)
            found += records
            pages -= bool(records)
    return found


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("paging", ["page", "cursor", "link"])
def test_a_task_that_ends_between_pages_loses_nothing(server: HttpServer, paging: str, newest_first: bool) -> None:
    server.work = ItemList(45, newest_first=newest_first)
    source = Source(f"{server.url}/{paging}", **PAGINGS[paging])
    before = killed_after(source, 2)
    assert source.offset is None
    assert set(ids(before)) | set(ids(source.run())) == set(range(45))


def test_an_ascending_list_goes_on_behind_its_last_page(server: HttpServer) -> None:
    server.work = ItemList(45)
    source = Source(f"{server.url}/page", **{"http.response.list.order.direction": "ASC"}, **PAGINGS["page"])
    assert ids(killed_after(source, 2)) == list(range(20))
    assert source.offset == {"key": 19, "timestamp": "2026-01-01T00:00:06Z", "id": 19, "seen": source.offset["seen"]}
    assert len(source.offset["seen"].split()) == 2  # 18 and 19
    assert ids(source.run()) == list(range(20, 45))


def test_a_list_that_is_not_ascending_is_refused(server: HttpServer) -> None:
    server.work = ItemList(45, newest_first=True)
    source = Source(f"{server.url}/page", **{"http.response.list.order.direction": "ASC"}, **PAGINGS["page"])
    with pytest.raises(ConnectError, match="not in ascending order"):
        source.run()
    assert source.offset is None


def test_items_that_come_while_pages_are_read_are_not_lost(server: HttpServer) -> None:
    items = ItemList(25, newest_first=True)

    def work(request: Request) -> Answer:
        answer = items(request)
        if len(server.requests) == 2:
            items.add(5)  # the pages move
        return answer

    server.work = work
    source = Source(f"{server.url}/page", **PAGINGS["page"])
    found = ids(source.run()) + ids(source.run())
    assert set(found) == set(range(30))


def test_items_with_the_cursor_of_the_last_one_come_later(server: HttpServer) -> None:
    server.work = items = ItemList(2)  # both have the first second
    source = Source(f"{server.url}/none")
    assert ids(source.run()) == [0, 1]
    items.add(1)
    assert ids(source.run()) == [2]
    items.items[1]["other"] = "x"
    assert ids(source.run()) == [1]


def test_without_a_cursor_each_run_has_all(server: HttpServer) -> None:
    server.work = ItemList(3)
    source = Source(f"{server.url}/none", **{"http.response.record.offset.pointer": "key=/id"})
    assert [ids(source.run()) for _ in range(2)] == [[0, 1, 2], [0, 1, 2]]
    assert source.offset is None


def test_numbers_are_cursors_too(server: HttpServer) -> None:
    server.work = lambda _request: Answer(body=[{"n": "9"}, {"n": "10"}])
    own = {"http.response.list.pointer": "/", "http.response.record.offset.pointer": "n=/n"}
    source = Source(server.url, **own)
    assert [each.value["n"] for each in source.run()] == ["9", "10"]
    assert source.run() == []
    server.work = lambda _request: Answer(body=[{"n": "9"}, {"n": "11"}])
    assert [each.value["n"] for each in source.run()] == ["11"]


def test_a_token_of_the_answer_is_for_the_next_run(server: HttpServer) -> None:
    def work(request: Request) -> Answer:
        since = int(request.query.get("token", 0))
        return Answer(body={"items": [{"id": since}], "next": {"token": since + 1}})

    server.work = work
    source = Source(
        server.url,
        **{"http.response.offset.pointer": "token=/next/token", "http.response.record.offset.pointer": "key=/id"},
        **{"http.request.params": "token=${offset.token}"},
    )
    assert [ids(source.run()) for _ in range(3)] == [[0], [1], [2]]
    assert source.offset == {"token": 3}


def test_placeholders_in_bodies_headers_and_urls(server: HttpServer) -> None:
    server.work = lambda _request: Answer(body={"items": [{"id": 'a"b', "updated": "2026-01-01"}]})
    source = Source(
        f"{server.url}/x/${{offset.id}}",
        **{
            "http.request.method": "POST",
            "http.request.body": '{"since": "${offset.timestamp}", "id": "${offset.id}"}',
            "http.request.headers": "X-Since: ${offset.timestamp}, X-Other: y",
            "http.offset.initial": "id=0/1",
        },
    )
    source.run()
    source.run()
    assert [each.path for each in server.requests] == ["/x/0%2F1", "/x/a%22b"]
    assert [each.json for each in server.requests] == [
        {"since": "", "id": "0/1"},
        {"since": "2026-01-01", "id": 'a"b'},
    ]
    assert [each.headers.get("X-Since") for each in server.requests] == [None, "2026-01-01"]


def test_only_what_has_changed_is_asked_for(server: HttpServer) -> None:
    def work(request: Request) -> Answer:
        if request.headers.get("If-None-Match") == '"1"' and request.headers["If-Modified-Since"] == "D":
            return Answer(304)
        return Answer(body={"items": [{"id": 1}]}, headers={"ETag": '"1"', "Last-Modified": "D"})

    server.work = work
    own = {"http.conditional.requests": "true", "http.response.record.offset.pointer": ""}
    source = Source(server.url, **own)
    assert [ids(source.run()) for _ in range(3)] == [[1], [], []]
    assert source.offset == {"etag": '"1"', "last.modified": "D"}


@pytest.mark.parametrize("answer", [Answer(429, headers={"Retry-After": "0"}), Answer(500), Answer(503), RESET], ids=str)
def test_what_may_pass_is_asked_for_again(server: HttpServer, answer: Answer) -> None:
    server.work = ItemList(25)
    server.faults += [Answer(body={"items": [{"id": -1, "updated": "2025-01-01"}], "next": "0"}), answer, answer]
    found = Source(f"{server.url}/cursor", **PAGINGS["cursor"]).run()
    assert ids(found) == [-1, *range(25)]


def test_attempts_are_limited_on_request(server: HttpServer) -> None:
    server.work = lambda _request: Answer(503)
    with pytest.raises(ConnectError, match=r"after 3 attempts, more than max\.retries allows"):
        Source(server.url, **{"max.retries": "2"}).run()
    with pytest.raises(ConnectError, match=r"sluiceway\.unreachable\.timeout\.ms"):
        Source(server.url, **{"sluiceway.unreachable.timeout.ms": "0"}).run()


@pytest.mark.parametrize(
    ("answer", "text", "config"),
    [
        (Answer(404), "HTTP 404", {}),
        (Answer(400, b"bad since"), "bad since", {}),
        (Answer(body=b"<html>"), "gave no JSON", {}),
        (Answer(body=b"x" * 2000), "more than 1000 bytes", {"http.response.max.bytes": "1000"}),
        (Answer(302, headers={"Location": "http://elsewhere.invalid/"}), "credentials go nowhere else", {}),
        (Answer(body={"items": [], "next": "http://elsewhere.invalid/x"}), "another server", PAGINGS["next"]),
        (Answer(body={"items": [], "next": [1]}), "no URL or cursor", PAGINGS["cursor"]),
        (Answer(body={"items": [], "next": "7"}), "same cursor", PAGINGS["cursor"]),
        (Answer(body={"items": [], "next": "?a"}), "its own next page", PAGINGS["next"]),
        (Answer(body={"items": [{"id": 1}]}), "An item has nothing at /updated", {}),
        (Answer(body={"items": [{"id": 1, "updated": "soon"}]}), "no time", {}),
    ],
)
def test_what_does_not_pass_fails_the_task(server: HttpServer, answer: Answer, text: str, config: dict[str, str]) -> None:
    server.work = lambda _request: answer
    with pytest.raises(ConnectError, match=text):
        Source(f"{server.url}/x", **config).run()


def test_redirects_within_the_server_are_followed(server: HttpServer) -> None:
    items = ItemList(3)
    moved = Answer(301, headers={"Location": "/none"})
    server.work = lambda request: moved if request.path == "/old" else items(request)
    own = {"http.authorization.type": "api-key", "http.api.key": "k"}
    assert ids(Source(f"{server.url}/old", **own).run()) == [0, 1, 2]
    assert server.requests[-1].headers["X-API-Key"] == "k"
    server.work = lambda _request: moved
    with pytest.raises(ConnectError, match="a redirect without an end"):
        Source(f"{server.url}/old", **own).run()


def test_bad_items_are_reported(server: HttpServer) -> None:
    server.work = lambda _request: Answer(body={"items": [{"id": 1}, {"id": 2, "updated": "2026-01-01"}]})
    source = Source(server.url, **{"errors.tolerance": "all"})
    assert ids(source.run()) == [2]
    assert source.run() == []


def test_castorms_login_and_tokens(server: HttpServer) -> None:
    server.work = ItemList(1)
    Source(f"{server.url}/none", **{"http.auth.type": "Basic", "http.auth.user": "u", "http.auth.password": "p"}).run()
    assert server.requests[0].headers["Authorization"] == "Basic dTpw"
    server.work = TokenServer(ItemList(2))
    login = {"oauth2.access.token.url": f"{server.url}/token", "oauth2.client.id": "c", "oauth2.client.secret": "s"}
    assert ids(Source(f"{server.url}/none", **{"http.authorization.type": "oauth2"}, **login).run()) == [0, 1]


def test_offsets_may_be_set(server: HttpServer) -> None:
    source, connector = Source(f"{server.url}/none?token=hush"), HttpSourceConnector()
    partition = {"url": f"{server.url}/none"}
    assert connector.alter_offsets(source.config, [(partition, {"timestamp": "2026-01-01T00:00:02Z"}), (partition, None)])
    for own, offset in (({"url": "x"}, {"id": 1}), (partition, {}), (partition, {"id": [1]}), (partition, {"seen": 7})):
        with pytest.raises(ConnectError, match=r"no (partition|offset)"):
            connector.alter_offsets(source.config, [(own, offset)])
    server.work = ItemList(12)
    source.offsets.store(partition, {"timestamp": "2026-01-01T00:00:02Z"})
    assert ids(source.run()) == list(range(6, 12))  # without hashes, those with the same time come


@pytest.mark.parametrize(("direction", "supported"), [("ASC", True), ("IMPLICIT", False)])
def test_exactly_once_needs_an_order(direction: str, supported: bool) -> None:
    config = Source("http://h/x", **{"http.response.list.order.direction": direction}).config
    assert (HttpSourceConnector().exactly_once_support(config) is ExactlyOnceSupport.SUPPORTED) == supported


class TestContract(SourceConnectorContract):
    connector_class = HttpSourceConnector
    record_count = 25
    records_within = poll_within = LIMIT

    @pytest.fixture
    def config(self, server: HttpServer) -> dict[str, str]:
        server.work = ItemList(25)
        own = {"http.timer.interval.millis": "10", "http.response.list.order.direction": "ASC"}
        return Source(f"{server.url}/cursor", **PAGINGS["cursor"], **own).config


def test_items_are_json(server: HttpServer) -> None:
    assert json.loads(ItemList(1)(Request("GET", "/none", {}, b"")).content)["items"][0]["id"] == 0
