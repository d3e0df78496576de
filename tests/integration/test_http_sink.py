"""HttpSink and a real server: requests, batches, order, refusals, credentials, and servers in trouble."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.errors import LoginError
from sluiceway.connectors.http import HttpSinkConnector
from sluiceway.connectors.http.sink import HttpSinkTask
from sluiceway.data import STRING_SCHEMA, Schema, Struct
from sluiceway.errors import ConfigError, ConnectError, RetriableError
from sluiceway.runtime.memory import MemorySinkContext
from sluiceway.testing import SinkConnectorContract
from support.certificates import Authority
from support.eventually import eventually
from support.http_server import RESET, Answer, Collector, HttpServer, Request, TokenServer
from support.sink_tasks import put_until_taken


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as server:
        yield server


class Running:
    """A task without Kafka."""

    def __init__(self, url: str, *, reports: bool = True, **more: Any) -> None:
        given = {name.replace("_", "."): value for name, value in more.items()}
        self.config = {"name": "n", "http.url": url, "retry.backoff.ms": "1", **given}
        self.context = MemorySinkContext(self.config, reports=reports)
        self.task = HttpSinkTask()
        self.task.initialize(self.context)
        self.task.start(self.config)

    def put(self, *records: SinkRecord) -> None:
        put_until_taken(self.task, self.context, records)

    @property
    def bad(self) -> list[int]:
        return [record.kafka_offset for record, _error in self.context.reported]

    @property
    def reasons(self) -> list[str]:
        return [str(error) for _record, error in self.context.reported]


@pytest.fixture
def start(server: HttpServer) -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def start(url: str = "", **more: Any) -> Running:
        made.append(Running(url or f"{server.url}/items", **more))
        return made[-1]

    yield start
    for each in made:
        each.task.stop()


Start = Callable[..., Running]


def record(offset: int, value: Any, key: Any = None, partition: int = 0, schema: Schema | None = None) -> SinkRecord:
    return SinkRecord("t", partition, offset, value, schema, key, None)


def records(low: int, high: int, partition: int = 0) -> list[SinkRecord]:
    return [record(number, str(number), partition=partition) for number in range(low, high)]


def bodies(server: HttpServer) -> list[bytes]:
    return [each.body for each in server.requests]


def test_each_record_is_a_request_with_a_key(server: HttpServer, start: Start) -> None:
    person = Schema.struct({"name": STRING_SCHEMA})
    values = ["ä", b"\xff", 7, True, Decimal("1.10"), {"a": [1, None]}]
    start(http_headers_additional="X-A: b c").put(
        *(record(number, value) for number, value in enumerate(values)), record(6, Struct(person, {"name": "x"}), schema=person)
    )
    assert bodies(server) == ["ä".encode(), b"\xff", b"7", b"true", b"1.10", b'{"a":[1,null]}', b'{"name":"x"}']
    assert [each.headers["Idempotency-Key"] for each in server.requests] == [f"n-t-0-{number}" for number in range(7)]
    assert {(each.method, each.target, each.headers["X-A"]) for each in server.requests} == {("POST", "/items", "b c")}


def test_values_as_json(server: HttpServer, start: Start) -> None:
    start(http_values="json", http_method="PUT", http_idempotency_header="").put(record(0, 'a"'), record(1, 1.5))
    assert [(each.method, each.body) for each in server.requests] == [("PUT", b'"a\\""'), ("PUT", b"1.5")]
    assert {each.headers["Content-Type"] for each in server.requests} == {"application/json"}
    assert all("Idempotency-Key" not in each.headers for each in server.requests)


def test_batches_as_aivens_connector_makes_them(server: HttpServer, start: Start) -> None:
    start(batching_enabled="true", batch_max_size="2").put(*records(0, 3))
    start(batching_enabled="true", batch_prefix="[", batch_suffix="]", batch_separator=" , ").put(*records(3, 6))
    assert bodies(server) == [b"0\n1\n", b"2\n", b"[3 , 4 , 5]"]
    keys = [each.headers["Idempotency-Key"] for each in server.requests]
    assert keys[0].startswith("n-t-0-0-1-")
    assert keys[1] == "n-t-0-2"


def test_batches_as_arrays(server: HttpServer, start: Start) -> None:
    start(batching_enabled="true", batch_json_as_array="true").put(*records(0, 3))
    assert [each.json for each in server.requests] == [["0", "1", "2"]]


def test_urls_have_parts_of_records(server: HttpServer, start: Start) -> None:
    sink = start(f"{server.url}/${{topic}}/${{key}}?o=${{offset}}&c=${{value.customer.id}}", batching_enabled="true")
    sink.put(record(3, {"customer": {"id": "ä/b"}}, "x?y"), record(4, {"customer": {"id": 7}}, "x?y"))
    assert [each.target for each in server.requests] == ["/t/x%3Fy?o=3&c=%C3%A4%2Fb", "/t/x%3Fy?o=4&c=7"]
    for bad in ("..", "", None, [1]):
        sink.put(record(5, {"customer": {"id": 7}}, bad))
    sink.put(record(6, {"other": 7}, "k"))
    assert sink.bad == [5, 5, 5, 5, 6]
    assert len(server.requests) == 2


def test_tombstones_delete(server: HttpServer, start: Start) -> None:
    sink = start(f"{server.url}/items/${{key}}", behavior_on_null_values="delete", batching_enabled="true")
    server.faults += [Answer(404), Answer(204)]
    sink.put(record(0, None, "a"), record(1, None, "b"), record(2, "v", "b"))
    assert [(each.method, each.path, each.body) for each in server.requests] == [
        ("DELETE", "/items/a", b""),
        ("DELETE", "/items/b", b""),
        ("POST", "/items/b", b"v\n"),
    ]
    start(behavior_on_null_values="ignore").put(record(3, None))
    other = start()
    other.put(record(4, None))
    assert other.bad == [4]
    assert len(server.requests) == 3
    assert sink.bad == []


def refusing(*bad: bytes) -> Callable[[Request], Answer]:
    def work(request: Request) -> Answer:
        return Answer(422, b"not\n this") if any(each in request.body.split() for each in bad) else Answer()

    return work


def test_a_refused_record_is_reported_alone(server: HttpServer, start: Start) -> None:
    server.work = refusing(b"3", b"6")
    sink = start(batching_enabled="true")
    sink.put(*records(0, 8))
    assert sink.bad == [3, 6]
    assert "HTTP 422: not this" in sink.reasons[0]
    taken = [body.split() for body, each in zip(bodies(server), server.requests, strict=True) if server.work(each).status == 200]
    assert sorted(part for each in taken for part in each) == [b"0", b"1", b"2", b"4", b"5", b"7"]
    whole = start(batching_enabled="true", batch_on_refused="report")
    whole.put(*records(2, 5))
    assert whole.bad == [2, 3, 4]


def test_without_a_reporter_a_refused_record_fails_the_task(server: HttpServer, start: Start) -> None:
    server.work = refusing(b"1")
    with pytest.raises(ConnectError, match=r"t-0 at offset 1 was refused: .*HTTP 422"):
        start(reports=False).put(*records(0, 3))


@pytest.mark.parametrize(
    "answer", [Answer(429, headers={"Retry-After": "0"}), Answer(503), Answer(500), Answer(408), RESET], ids=str
)
def test_what_may_pass_is_sent_again_in_order(server: HttpServer, start: Start, answer: Answer) -> None:
    server.work = collector = Collector()
    server.faults += [answer]
    sink = start()
    sink.put(*records(0, 5))
    assert collector.bodies == [b"0", b"1", b"2", b"3", b"4"]
    assert sink.bad == []


def test_a_request_that_was_done_before_its_connection_was_lost_has_the_same_key(server: HttpServer, start: Start) -> None:
    collector, lost = Collector(), threading.Event()

    def work(request: Request) -> Answer:
        done = collector(request)
        if lost.is_set():
            return done
        lost.set()
        return RESET

    server.work = work
    start(batching_enabled="true", batch_max_size="2").put(*records(0, 5))
    assert collector.bodies == [b"0\n1\n", b"2\n3\n", b"4\n"]
    assert collector.seen == 4


def test_retry_after_is_waited_for(server: HttpServer, start: Start) -> None:
    sink = start(retry_backoff_ms="20")
    server.faults += [Answer(429, headers={"Retry-After": "120"}), Answer(503)]
    for least in (120_000, 20):
        with pytest.raises(RetriableError, match=r"HTTP (429|503)"):
            sink.task.put(records(0, 1))
        assert sink.context.timeouts[-1] >= least
    assert sink.context.timeouts[-1] < 120_000


def test_max_retries_counts_attempts_without_progress(server: HttpServer, start: Start) -> None:
    sink = start(max_retries="2")
    server.work = lambda request: Answer(503 if request.body == b"1" else 200)
    with pytest.raises(RetriableError):
        sink.task.put(records(0, 2))  # it has sent one
    for _ in range(2):
        with pytest.raises(RetriableError):
            sink.task.put(records(0, 2))
    with pytest.raises(ConnectError, match=r"after 3 attempts, more than max\.retries allows"):
        sink.task.put(records(0, 2))
    assert bodies(server) == [b"0", b"1", b"1", b"1", b"1"]


def test_an_outage_ends_the_task_after_its_limit(server: HttpServer, start: Start) -> None:
    sink = start(sluiceway_unreachable_timeout_ms="0")
    server.stop()
    with pytest.raises(ConnectError, match="does not answer"):
        sink.task.put(records(0, 1))


def test_requests_of_partitions_run_at_the_same_time_and_in_order(server: HttpServer, start: Start) -> None:
    server.work = collector = Collector()
    both = threading.Barrier(2, timeout=30)
    first = {b"0-0", b"1-0"}

    def work(request: Request) -> Answer:
        if request.body in first:
            both.wait()
        return collector(request)

    server.work = work
    start().put(*(record(number, f"{part}-{number}", partition=part) for number in range(10) for part in (0, 1)))
    assert server.most_running == 2
    for part in (0, 1):
        assert [each for each in collector.bodies if each.startswith(b"%d-" % part)] == [b"%d-%d" % (part, n) for n in range(10)]


def test_a_key_keeps_its_order_beside_others(server: HttpServer, start: Start) -> None:
    server.work = collector = Collector()
    server.faults += [Answer(503), Answer(), RESET]
    keys = [f"k{number % 7}" for number in range(70)]
    start(http_order="key", http_max_in_flight="5").put(*(record(n, f"{key}:{n}", key) for n, key in enumerate(keys)))
    for key in set(keys):
        numbers = [int(each.split(b":")[1]) for each in collector.bodies if each.startswith(key.encode())]
        assert numbers == sorted(numbers)
    assert len(collector.bodies) >= 69  # the second answer was a success that the collector has not seen
    assert server.most_running <= 5


def test_without_an_order_all_may_be_on_their_way(server: HttpServer, start: Start) -> None:
    waiting = threading.Barrier(3, timeout=30)
    server.work = lambda _request: Answer(body=str(waiting.wait()))
    start(http_order="none", http_max_in_flight="3").put(*records(0, 3))
    assert server.most_running == 3


def test_wrong_credentials_and_urls_fail_the_task(server: HttpServer, start: Start) -> None:
    for status, text in ((401, "http.auth.token"), (403, "http.auth.token"), (405, "http.method"), (404, "http.url")):
        server.faults += [Answer(status)]
        sink = start(http_authorization_type="bearer", http_auth_token="hush")
        with pytest.raises(ConnectError, match=text) as error:
            sink.task.put(records(0, 1))
        assert not isinstance(error.value, RetriableError)
        assert "hush" not in str(error.value)
        assert sink.bad == []
    keyed = start(f"{server.url}/items/${{key}}")
    server.faults += [Answer(404)]
    keyed.put(record(0, "v", "k"))
    assert keyed.bad == [0]


def test_redirects_are_not_followed_and_take_no_credentials(server: HttpServer, start: Start) -> None:
    with HttpServer() as other:
        server.work = lambda _request: Answer(307, headers={"Location": f"{other.url}/x?token=hush"})
        with pytest.raises(ConnectError, match=r"points to .*/x\?token=\.\.\. ") as error:
            start(http_authorization_type="api-key", http_api_key="hush").task.put(records(0, 1))
        assert other.requests == []
        assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    ("config", "header", "value"),
    [
        ({"http_authorization_type": "basic", "http_auth_user": "u", "http_auth_password": "p"}, "Authorization", "Basic dTpw"),
        ({"http_authorization_type": "bearer", "http_auth_token": "t"}, "Authorization", "Bearer t"),
        ({"http_authorization_type": "static", "http_headers_authorization": "X y"}, "Authorization", "X y"),
        ({"http_authorization_type": "api-key", "http_api_key": "k"}, "X-API-Key", "k"),
        ({"http_headers_secret": "X-Secret: a, X-Other: b"}, "X-Secret", "a"),
    ],
)
def test_credentials_are_sent(server: HttpServer, start: Start, config: dict[str, str], header: str, value: str) -> None:
    start(**config).put(*records(0, 1))
    assert server.requests[0].headers[header] == value


OAUTH2 = {"http_authorization_type": "oauth2", "oauth2_client_id": "me", "oauth2_client_secret": "hush"}


def test_tokens_are_kept_and_renewed_when_refused(server: HttpServer, start: Start) -> None:
    server.work = tokens = TokenServer(collector := Collector())
    sink = start(oauth2_access_token_url=f"{server.url}/token", oauth2_client_scope="write", **OAUTH2)
    sink.put(*records(0, 5))
    assert tokens.given == 1
    assert tokens.forms[0].headers["Authorization"] == "Basic bWU6aHVzaA=="
    assert tokens.forms[0].body == b"grant_type=client_credentials&scope=write"
    tokens.valid.clear()
    sink.put(*records(5, 10))
    assert tokens.given == 2
    assert collector.bodies == [b"%d" % number for number in range(10)]


def test_tokens_are_renewed_before_they_expire(server: HttpServer, start: Start) -> None:
    server.work = tokens = TokenServer(Collector(), life=1e-9)
    sink = start(oauth2_access_token_url=f"{server.url}/token", oauth2_client_authorization_mode="url", **OAUTH2)
    sink.put(*records(0, 3))
    assert tokens.given >= 2
    assert tokens.forms[0].body == b"grant_type=client_credentials&client_id=me&client_secret=hush"


def test_tokens_that_are_not_given(server: HttpServer, start: Start) -> None:
    sink = start(oauth2_access_token_url=f"{server.url}/token", **OAUTH2)
    server.faults += [Answer(503, headers={"Retry-After": "7"})]
    with pytest.raises(RetriableError, match="gives no token"):
        sink.task.put(records(0, 1))
    assert sink.context.timeouts[-1] == 7000
    server.faults += [Answer(400, {"error": "invalid_client"})]
    with pytest.raises(LoginError, match=r"invalid_client.* oauth2\.client\.secret"):
        sink.task.put(records(0, 1))
    for body in (b"no json", [1], {"access_token": 7}, {"access_token": "a\nb"}, {"other": "x"}):
        server.faults += [Answer(body=body)]
        with pytest.raises(ConnectError, match="gives no token in the field access_token"):
            sink.task.put(records(0, 1))


def test_mutual_tls(tmp_path: Path) -> None:
    authority = Authority("test")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.pem)
    context.verify_mode = ssl.CERT_REQUIRED
    for name, parts in (("server", authority.issue("server")), ("client", authority.issue("client"))):
        (tmp_path / f"{name}.pem").write_text("".join(reversed(parts)))
    (tmp_path / "ca.pem").write_text(authority.pem)
    context.load_cert_chain(tmp_path / "server.pem")
    trust = {"http.ssl.truststore.location": str(tmp_path / "ca.pem")}
    own = {"http.ssl.keystore.location": str(tmp_path / "client.pem")}
    with HttpServer(tls=context) as server:
        sink = Running(server.url, reports=True, **{name.replace(".", "_"): value for name, value in {**trust, **own}.items()})
        sink.put(*records(0, 2))
        sink.task.stop()
        assert bodies(server) == [b"0", b"1"]
        untrusting = Running(server.url)
        with pytest.raises(ConnectError, match=r"http\.ssl\.truststore\.location") as error:
            untrusting.task.put(records(0, 1))
        assert not isinstance(error.value, RetriableError)
        untrusting.task.stop()


def test_a_proxy_is_used(server: HttpServer, start: Start) -> None:
    start("http://no.such.host.invalid/x", http_proxy_url=server.url).put(*records(0, 1))
    assert server.requests[0].target == "http://no.such.host.invalid/x"
    with pytest.raises(ConfigError):
        start(http_proxy_url="ftp://x")


def test_what_was_sent_of_a_put_is_not_sent_again(server: HttpServer, start: Start) -> None:
    server.work = refusing()
    sink = start()
    server.faults += [Answer(), Answer(), Answer(503)]
    with pytest.raises(RetriableError, match="2 of 4 records later"):
        sink.task.put(batch := records(0, 4))
    sink.task.put(batch)
    assert bodies(server) == [b"0", b"1", b"2", b"2", b"3"]
    assert sink.task.metrics()["requests-sent"] == 5


def test_several_records_of_one_message_have_different_keys(server: HttpServer, start: Start) -> None:
    start().put(record(0, "a"), record(0, "b"))
    assert [each.headers["Idempotency-Key"] for each in server.requests] == ["n-t-0-0", "n-t-0-0.1"]


class TestContract(SinkConnectorContract):
    connector_class = HttpSinkConnector

    @pytest.fixture
    def config(self, server: HttpServer) -> dict[str, str]:
        return {"http.url": server.url, "http.values": "json", "retry.backoff.ms": "1"}


def test_a_stopped_server_is_waited_for(server: HttpServer, start: Start) -> None:
    server.work = collector = Collector()
    sink = start()
    server.stop()
    thread = threading.Thread(target=sink.put, args=records(0, 3))
    thread.start()
    eventually(lambda: sink.context.timeouts, what="a pause")
    server.start()
    thread.join()
    assert collector.bodies == [b"0", b"1", b"2"]
