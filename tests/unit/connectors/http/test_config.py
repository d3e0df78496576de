"""Keys of HttpSource and HttpSink, templates, pointers, positions, and pages, without a server."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api import SinkRecord
from sluiceway.connectors.errors import LoginError, UnreachableError
from sluiceway.connectors.http import HttpSinkConnector, HttpSourceConnector
from sluiceway.connectors.http.client import Answer
from sluiceway.connectors.http.connection import OAuth2, Server, shown_url
from sluiceway.connectors.http.paging import Page, link_of, next_page
from sluiceway.connectors.http.pointers import filled, found_at
from sluiceway.connectors.http.position import Moment, Position, comparable, hash_of, is_after, moment_of
from sluiceway.connectors.http.requests import Item, filled_url, idempotency_key
from sluiceway.connectors.http.sink_config import sink_options
from sluiceway.connectors.http.source_config import source_options
from sluiceway.discovery import connector_class
from sluiceway.errors import ConfigError, ConnectError, DataError

SINK = {"http.url": "https://h/x"}
SOURCE = {"http.request.url": "https://h/x", "kafka.topic": "t"}
OFFSETS, ANSWER_OFFSETS = "http.response.record.offset.pointer", "http.response.offset.pointer"


def errors(connector: Any, config: dict[str, str]) -> list[str]:
    """Return the names of keys with errors, and check that ``start`` refuses the same config."""
    found = [name for name, each in connector.check(config).items() if each.errors]
    if found:
        with pytest.raises(ConfigError) as raised:
            connector().start(config)
        assert "hush" not in str(raised.value)
    else:
        connector().start(config)
    return found


def test_java_class_names_are_known() -> None:
    assert connector_class("io.aiven.kafka.connect.http.HttpSinkConnector") is HttpSinkConnector
    assert connector_class("com.github.castorm.kafka.connect.http.HttpSourceConnector") is HttpSourceConnector


def test_a_config_of_aivens_connector_is_taken_as_it_is() -> None:
    config = {
        "name": "http-sink-test",
        "http.authorization.type": "static",
        "http.headers.authorization": "Bearer x",
        "http.url": "http://mock:1080",
        "http.headers.content.type": "application/json",
        "http.headers.additional": "a:1,b:2",
        "http.timeout": "10",
        "batching.enabled": "true",
        "batch.max.size": "2",
        "batch.prefix": "[",
        "batch.suffix": "]",
        "batch.separator": ",\n",
        "max.retries": "3",
        "retry.backoff.ms": "100",
    }
    assert errors(HttpSinkConnector, config) == []
    options = sink_options(config)
    assert (options.batch, options.prefix, options.separator, options.suffix) == (2, b"[", b",\n", b"]")
    assert (options.retries.most, options.limits.backoff, options.server.timeout) == (3, 0.1, 10.0)
    assert options.headers == {"Content-Type": "application/json", "a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("config", "key"),
    [
        *(({"http.url": each}, "http.url") for each in ("", "h/x", "ftp://h", "https://", "https://h:0", "https://h:99999")),
        *(
            ({"http.url": each}, "http.url")
            for each in ("https://me:hush@h/", "https://${key}/", "https://h/${x}", "https://h/a b")
        ),
        *(({"http.url": each}, "http.url") for each in ("https://h/${value}", "https://h/$key", "https://h/${value..a}")),
        ({"http.authorization.type": "apikey"}, "http.authorization.type"),
        ({"http.authorization.type": "basic", "http.auth.user": "u"}, "http.auth.password"),
        ({"http.authorization.type": "basic", "http.auth.user": "u:v", "http.auth.password": "hush"}, "http.auth.user"),
        ({"http.authorization.type": "bearer", "http.auth.token": "hu\nsh"}, "http.auth.token"),
        ({"http.authorization.type": "bearer"}, "http.auth.token"),
        ({"http.auth.token": "hush"}, "http.auth.token"),
        ({"http.authorization.type": "oauth2", "oauth2.client.id": "c", "oauth2.client.secret": "s"}, "oauth2.access.token.url"),
        ({"http.headers.secret": "hush"}, "http.headers.secret"),
        ({"http.headers.secret": "a:1,A:2"}, "http.headers.secret"),
        ({"http.headers.additional": "Host:x"}, "http.headers.additional"),
        ({"http.headers.additional": "a b:x"}, "http.headers.additional"),
        ({"http.proxy.url": "proxy:hush"}, "http.proxy.url"),
        ({"http.method": "GET"}, "http.method"),
        ({"http.method": "DELETE", "batching.enabled": "true"}, "batching.enabled"),
        ({"behavior.on.null.values": "delete"}, "http.url"),
        ({"http.delete.url": "https://h/${key}"}, "http.delete.url"),
        ({"batch.json.as.array": "true", "batch.prefix": "("}, "batch.prefix"),
        ({"http.max.in.flight": "0"}, "http.max.in.flight"),
        ({"max.retries": "-1"}, "max.retries"),
        ({"kafka.retry.backoff.ms": "1"}, "kafka.retry.backoff.ms"),
    ],
)
def test_keys_of_the_sink_are_checked(config: dict[str, str], key: str) -> None:
    assert errors(HttpSinkConnector, {**SINK, **config}) == [key]


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"http.request.url": "https://h/${offset.id}", OFFSETS: "id=/id"}, "http.request.url"),
        ({"http.request.params": "a=${offset.id}"}, "http.request.params"),
        ({"http.request.params": "a=${offset.timestamp?datetime.iso?long}", OFFSETS: "timestamp=/t"}, "http.request.params"),
        ({"http.request.params": "a=${page.number}"}, "http.request.params"),
        ({"http.paging": "page"}, "http.request.params"),
        ({"http.paging": "next"}, "http.paging.pointer"),
        ({"http.paging": "link", "http.paging.pointer": "/x"}, "http.paging.pointer"),
        ({"http.paging": "soon"}, "http.paging"),
        ({OFFSETS: "id"}, OFFSETS),
        ({OFFSETS: "id=id"}, OFFSETS),
        ({OFFSETS: "id=/a~2"}, OFFSETS),
        ({OFFSETS: "id=/a,id=/b"}, OFFSETS),
        ({OFFSETS: "seen=/a"}, OFFSETS),
        ({OFFSETS: "id=/a", ANSWER_OFFSETS: "id=/b"}, ANSWER_OFFSETS),
        ({"http.response.list.pointer": "items"}, "http.response.list.pointer"),
        ({"http.response.list.order.direction": "ASC", OFFSETS: "key=/id"}, "http.response.list.order.direction"),
        ({"http.response.values": "body", OFFSETS: "key=/id"}, OFFSETS),
        ({"http.response.values": "body", "http.paging": "page", "http.request.params": "p=${page.number}"}, "http.paging"),
        ({"http.offset.initial": "id=1"}, "http.offset.initial"),
        ({"http.conditional.requests": "true", "http.paging": "link"}, "http.conditional.requests"),
        ({"http.requests.per.second": "-1"}, "http.requests.per.second"),
        ({"http.auth.type": "Basic", "http.auth.user": "u"}, "http.auth.password"),
        ({"http.client.read.timeout.millis": "1"}, "http.client.read.timeout.millis"),
        ({"http.response.record.timestamp.parser.pattern": "x"}, "http.response.record.timestamp.parser.pattern"),
    ],
)
def test_keys_of_the_source_are_checked(config: dict[str, str], key: str) -> None:
    assert errors(HttpSourceConnector, {**SOURCE, **config}) == [key]


def test_a_config_of_castorms_connector_is_taken_as_it_is() -> None:
    config = {
        "kafka.topic": "issues",
        "http.request.url": "https://jira.example.com/rest/api/2/search",
        "http.request.params": 'jql=updated>="${offset.timestamp}"&maxResults=100',
        "http.request.headers": "Accept: application/json, X-A: b",
        "http.auth.type": "Basic",
        "http.auth.user": "u",
        "http.auth.password": "p",
        "http.offset.initial": "timestamp=2020-05-08T07:55:44Z",
        "http.response.list.pointer": "/issues",
        "http.response.record.offset.pointer": "key=/id, timestamp=/fields/updated",
        "http.timer.interval.millis": "30000",
    }
    assert errors(HttpSourceConnector, config) == []
    options = source_options(config)
    assert options.params == [("jql", 'updated>="${offset.timestamp}"'), ("maxResults", "100")]
    assert options.headers == [("Accept", "application/json"), ("X-A", "b")]
    assert (options.interval, options.server.authorization, options.cursor) == (30.0, "basic", "timestamp")


def test_secrets_are_not_shown() -> None:
    assert shown_url("https://u:hush@h:1/p?token=hush&a") == "https://h:1/p?token=...&a=..."
    server = Server(
        "http.url", headers=[("Authorization", "hush")], oauth2=OAuth2("http://h?a=hush", "c", "hush", True, None, "t")
    )
    assert "hush" not in repr(server)
    options = sink_options({**SINK, "http.authorization.type": "bearer", "http.auth.token": "hush"})
    assert "hush" not in repr(options)


def test_errors_can_be_pickled() -> None:
    for error in (UnreachableError("x", 3.0), LoginError("x", "key")):
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301
        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_pointers() -> None:
    value = {"a": [{"b/c": 1, "~": None}], "": 2}
    assert found_at("/a/0/b~1c", value) == 1
    assert found_at("", value) == found_at("/", value) == value
    for missing in ("/a/1", "/a/-", "/a/01", "/x/y", "/a/0/~0", "/a/0/b~1c/d"):
        assert found_at(missing, value) is None


def test_templates() -> None:
    assert filled("a${x}-${y}", {"x": True, "y": 1.5}) == "atrue-1.5"
    assert filled("${x}", {}) is None
    assert filled("${x}", {"x": "${y}", "y": "no"}) == "${y}"


@given(st.text(min_size=1))
def test_a_key_stays_within_its_step_of_the_path(key: str) -> None:
    record = SinkRecord("t", 0, 7, "v", None, key, None)
    try:
        url = filled_url("https://h/items/${key}/x", record)
    except (DataError, UnicodeError):
        assert key in (".", "..") or any("\ud800" <= each <= "\udfff" for each in key)
        return
    assert url.startswith("https://h/items/")
    assert url.count("/") == 5
    assert not set(url) & set("?#\r\n ")


def item(offset: int, repeat: int = 0, partition: int = 0) -> Item:
    return Item("POST", "u", b"", None, SinkRecord("t", partition, offset, "v"), repeat)


def test_idempotency_keys_differ_if_records_do() -> None:
    requests = [[item(1)], [item(1, 1)], [item(1), item(3)], [item(1), item(2), item(3)], [item(1), item(3, 1)]]
    requests += [[item(1, partition=1)], [item(1), item(3, partition=1)], [item(2), item(3)]]
    keys = [idempotency_key("ä n", each) for each in requests]
    assert len(set(keys)) == len(requests)
    assert keys == [idempotency_key("ä n", each) for each in requests]
    assert all(each.isascii() and " " not in each for each in keys)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-02", Moment(86400, "")),
        ("1970-01-01T00:01:00Z", Moment(60, "")),
        ("1970-01-01 00:01", Moment(60, "")),
        ("1970-01-01T01:00:00.250+01:00", Moment(0, "25")),
        ("1970-01-01T00:00:00,123456789-0130", Moment(5400, "123456789")),
        ("1969-12-31T23:59:59Z", Moment(-1, "")),
        ("2026-13-01", None),
        ("soon", None),
        ("2026-01-01T", None),
    ],
)
def test_moments(text: str, moment: Moment | None) -> None:
    assert moment_of(text) == moment


def test_cursors_are_compared_by_their_kind() -> None:
    assert is_after("10", "9")
    assert is_after("2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.45Z")
    assert not is_after("2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z")
    assert is_after("b", "a")
    assert is_after(1.5, 1)
    for one, other in (("a", 1), ("2026-01-01", "a"), ("2026-01-01", 5)):
        with pytest.raises(DataError, match="cannot be compared"):
            is_after(one, other)
    for value in (None, "", True, [1]):
        with pytest.raises(DataError, match="A cursor must be"):
            comparable(value)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=30))
def test_a_position_has_all_that_was_read_and_nothing_newer(items: list[tuple[int, int]]) -> None:
    position = Position()
    for cursor, other in items:
        position = position.after("c", {"c": cursor}, hash_of([cursor, other]))
    position = Position.of(position.offset)
    for cursor, other in items:
        assert position.has("c", {"c": cursor}, hash_of([cursor, other]))
    greatest = max((cursor for cursor, _other in items), default=-1)
    assert not position.has("c", {"c": greatest + 1}, "x")
    assert not position.has("c", {"c": greatest}, "x")


@pytest.mark.parametrize(
    ("header", "url"),
    [
        ('<https://h/a>; rel="next"', "https://h/a"),
        ('<a>; rel="prev", <b,c>; rel="next"; title="x"', "b,c"),
        ("<a>; rel=next", "a"),
        ('<a>; rel="first next"', "a"),
        ('<a>; rel="nextish"', None),
        ('<a>; title="rel=next"', None),
        ("", None),
    ],
)
def test_links(header: str, url: str | None) -> None:
    assert link_of(header) == url


def test_the_last_page_of_numbers() -> None:
    options = source_options(
        {**SOURCE, "http.paging": "page", "http.paging.size": "10", "http.request.params": "p=${page.number}"}
    )
    answer = Answer(200, {}, b"", "https://h/x")
    assert next_page(options, Page(), answer, None, 10) == Page(number=2, records=10)
    assert next_page(options, Page(), answer, None, 9) is None
    own = source_options({**SOURCE, "http.paging": "next", "http.paging.pointer": "/n"})
    with pytest.raises(ConnectError, match="another server"):
        next_page(own, Page(), answer, {"n": "http://h/x"}, 1)
