"""Requests of the client of the REST API, and the addresses that get them."""

from __future__ import annotations

import base64
import json
import logging
import pickle
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from sluiceway.errors import ConfigError
from sluiceway.rest.client import ConnectClient, RestError
from sluiceway.rest.server import RestServer

SOURCE = {"connector.class": "FileStreamSource", "topic": "t"}


class Recorder:
    """Answers instead of servers, of which some may be away, and notes what was asked."""

    def __init__(
        self, answer: Any = None, *, away: tuple[str, ...] = (), failure: type[httpx.HTTPError] = httpx.ConnectError
    ) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.authorizations: list[str] = []
        self.answer, self.away, self.failure = answer, away, failure

    def client(self, *servers: str) -> ConnectClient:
        client = ConnectClient(servers or "http://s")
        client._http = httpx.Client(transport=httpx.MockTransport(self._respond))
        return client

    def _respond(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        self.authorizations += request.headers.get_list("Authorization")
        self.asked.append((request.method, str(request.url).replace("http://s/", "/"), body))
        if request.url.host in self.away:
            raise self.failure("away")
        return httpx.Response(204) if self.answer is None else httpx.Response(200, json=self.answer)


@pytest.mark.parametrize(
    ("call", "answer", "asked", "returned"),
    [
        (lambda c: c.infos(), {"a": {"info": {"name": "a"}}}, ("GET", "/connectors?expand=info", None), {"a": {"name": "a"}}),
        (lambda c: c.topics("a"), {"a": {"topics": ["t"]}}, ("GET", "/connectors/a/topics", None), ["t"]),
        (lambda c: c.patch_config("a/b", {"x": None}), {}, ("PATCH", "/connectors/a%2Fb/config", {"x": None}), {}),
        (
            lambda c: c.restart("a", tasks=True),
            None,
            ("POST", "/connectors/a/restart?includeTasks=true&onlyFailed=false", None),
            None,
        ),
        (
            lambda c: c.restart("a", only_failed=True),
            {"name": "a"},
            ("POST", "/connectors/a/restart?includeTasks=false&onlyFailed=true", None),
            None,
        ),
        (lambda c: c.restart_task("a", 3), None, ("POST", "/connectors/a/tasks/3/restart", None), None),
        (lambda c: c.offsets("a"), {"offsets": [1]}, ("GET", "/connectors/a/offsets", None), [1]),
        (
            lambda c: c.alter_offsets("a", [{"partition": {}, "offset": None}]),
            {"message": "done"},
            ("PATCH", "/connectors/a/offsets", {"offsets": [{"partition": {}, "offset": None}]}),
            "done",
        ),
        (lambda c: c.reset_offsets("a"), {"message": "gone"}, ("DELETE", "/connectors/a/offsets", None), "gone"),
        (lambda c: c.plugins(connectors_only=False), [], ("GET", "/connector-plugins?connectorsOnly=false", None), []),
        (lambda c: c.plugin_config("A$B"), [], ("GET", "/connector-plugins/A%24B/config", None), []),
        (lambda c: c.validate("A", {"k": "v"}), {}, ("PUT", "/connector-plugins/A/config/validate", {"k": "v"}), {}),
        (
            lambda c: c.preview("A", {"k": "v"}, records=3, seconds=2.0, from_beginning=True),
            {"records": []},
            ("POST", "/connector-plugins/A/config/preview?records=3&seconds=2.0&fromBeginning=true", {"k": "v"}),
            {"records": []},
        ),
        (lambda c: c.logger("x"), {"level": "INFO"}, ("GET", "/admin/loggers/x", None), {"level": "INFO"}),
        (lambda c: c.set_logger("x", "DEBUG"), ["x"], ("PUT", "/admin/loggers/x?scope=worker", {"level": "DEBUG"}), ["x"]),
        (
            lambda c: c.set_logger("x", "WARN", cluster=True),
            None,
            ("PUT", "/admin/loggers/x?scope=cluster", {"level": "WARN"}),
            [],
        ),
    ],
)
def test_each_call_is_one_request(call: Callable[[ConnectClient], Any], answer: Any, asked: Any, returned: Any) -> None:
    recorder = Recorder(answer)
    with recorder.client() as client:
        assert call(client) == returned
    assert recorder.asked == [asked]


def test_an_address_that_is_away_is_left_for_the_next_which_is_kept() -> None:
    recorder = Recorder([], away=("a", "b"))
    with recorder.client("http://a/", "http://b", "http://c") as client:
        assert client.connectors() == []
        assert client.connectors() == []
        assert client.server == "http://c"
    assert [url for _, url, _ in recorder.asked] == [f"http://{host}/connectors" for host in "abcc"]


def test_a_request_that_may_have_been_carried_out_is_not_sent_again() -> None:
    recorder = Recorder([], away=("a",), failure=httpx.ReadTimeout)
    with recorder.client("http://a", "http://b") as client, pytest.raises(RestError):
        client.pause("x")
    assert len(recorder.asked) == 1


def test_the_login_of_an_address_is_sent_and_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "httpx")
    recorder = Recorder([], away=("a",))
    with recorder.client("http://me:hunter2@a", "http://you:p%40ss@b:1/x") as client:
        assert client.connectors() == []
        assert client.server == "http://b:1/x"
    sent = [base64.b64decode(each.partition(" ")[2]).decode() for each in recorder.authorizations]
    assert sent == ["me:hunter2", "you:p@ss"]
    assert "http://b:1/x/connectors" in caplog.text
    assert not any(secret in caplog.text for secret in ("hunter2", "p%40ss", "p@ss"))


def test_addresses_that_are_all_away_are_named_without_their_logins() -> None:
    recorder = Recorder([], away=("a", "b"))
    with recorder.client("http://me:hunter2@a", "http://b") as client, pytest.raises(RestError) as caught:
        client.connectors()
    assert caught.value.status == 0
    assert "http://b or http://a" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_certificates_that_cannot_be_used_are_told() -> None:

    with pytest.raises(ConfigError, match="Cannot use the certificates for the REST API"):
        ConnectClient("https://a", ca="/no/such/file.pem")


def test_the_client_leads_a_connector_through_its_life(client: ConnectClient) -> None:
    assert client.put_config("a b?c#d", SOURCE) is True
    assert client.put_config("a b?c#d", SOURCE | {"batch.size": "5"}) is False
    assert client.create("c", SOURCE, "PAUSED")["name"] == "c"
    assert client.connectors() == ["a b?c#d", "c"]
    assert client.config("a b?c#d") == SOURCE | {"batch.size": "5", "name": "a b?c#d"}
    assert client.info("a b?c#d")["type"] == "source"
    client.pause("a b?c#d")
    assert client.status("a b?c#d")["connector"]["state"] == "PAUSED"
    client.stop("a b?c#d")
    client.resume("c")
    assert {name: status["connector"]["state"] for name, status in client.statuses().items()} == {
        "a b?c#d": "STOPPED",
        "c": "PAUSED",
    }
    assert client.tasks("a b?c#d") == []
    client.delete("a b?c#d")
    assert client.connectors() == ["c"]


def test_a_refusal_carries_the_servers_message_and_pickles(client: ConnectClient) -> None:
    with pytest.raises(RestError) as caught:
        client.status("none")
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 (our own)
    assert (copy.status, str(copy)) == (404, "No status found for connector none")


def test_a_server_that_is_not_there_is_an_error_that_names_it(server: RestServer) -> None:
    address = server.addresses[0]
    server.stop()
    with pytest.raises(RestError, match=f"Cannot reach the REST API at {address}"):
        ConnectClient(address).connectors()


@pytest.mark.parametrize("server_url", ["no-scheme", "http://", "http://a\nb", "ftp://x"])
def test_an_address_that_is_none_is_an_error_too(server_url: str) -> None:
    with pytest.raises(RestError, match="Cannot reach"):
        ConnectClient(server_url).connectors()


def test_a_web_page_is_not_taken_for_an_answer() -> None:
    client = ConnectClient("http://airflow")
    page = httpx.MockTransport(lambda _: httpx.Response(200, html="<html>"))
    client._http = httpx.Client(transport=page)
    with pytest.raises(RestError, match="not a Kafka Connect REST API"):
        client.connectors()


@pytest.mark.parametrize("content", [{"html": "<html>"}, {}, {"text": "Not Found"}], ids=["page", "empty", "text"])
def test_a_page_that_is_not_found_is_not_taken_for_a_connector_that_is_not(content: dict[str, str]) -> None:
    """Kafka Connect's server responds so, before its resources are there."""
    client = ConnectClient("http://connect")
    client._http = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(404, **content)))  # type: ignore[arg-type]
    with pytest.raises(RestError, match=r"or Kafka Connect is starting: it responded to GET /connectors/a/config") as failed:
        client.config("a")
    assert failed.value.status == 0


@pytest.mark.parametrize("request_it", [ConnectClient.infos, ConnectClient.connectors, lambda client: client.stop("a")])
def test_nothing_is_not_taken_for_an_answer(request_it: Callable[[ConnectClient], object]) -> None:
    """Kafka Connect's server responds so for a moment while it starts: it has neither no connectors nor stopped one."""
    client = ConnectClient("http://connect")
    client._http = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200)))
    with pytest.raises(RestError, match=r"or Kafka Connect is starting: .* with nothing but '200 OK'") as failed:
        request_it(client)
    assert failed.value.status == 0


def test_a_refusal_that_is_not_connects_is_told_by_its_status() -> None:
    client = ConnectClient("http://proxy")
    client._http = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(502, text="bad gateway")))
    with pytest.raises(RestError, match=r"GET http://proxy/connectors: response 502 Bad Gateway"):
        client.connectors()
