"""Secrets are planted in each kind of place of a whole stack; it is driven as users drive it, and then everything is searched.

Searched are the answers of both REST APIs, of the page, and of Spark's UI, what commands print and traces export, all topics, all
files of the stack with their modes, among them OpenLineage's events, and command lines and environments of all processes. Secrets
may be where they were planted.
"""

from __future__ import annotations

import json
import os
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition

from sluiceway.cli.main import main
from support.driver import write_properties
from support.eventually import LIMIT, NEVER, eventually
from support.fuzz import FIGURES
from support.java_plugins import CONNECT_FILE, fetch_runtime, plugin_folder
from support.kafka import Kafka
from support.otlp import OtlpReceiver
from support.stack import RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.long]

SOURCE, SINK, SHOP, JAVA = "canary-lines", "canary-archive", "canary-shop", "canary-java"
TOPIC, DEAD = "canary-lines", "canary-dead"
REFERRED = ("file", "variable", "connection", "airflow variable")
LITERAL = ("typed", "url", "jaas", "spark", "java")
OWN = ("worker", "user", "token", "collector")  # of the worker's file, its users, and the environment
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{}";'
COMMANDS = ("get config", "get tasks", "describe connector", "history")
USER = "ada"
SPANS = ("batch", "put", "connector begin", "PUT /connectors/{name}/config")


class Place(NamedTuple):
    """A file that has a secret, or a process that shows it."""

    secret: str
    where: str


class Canaries:
    """The secrets by place, the configs with them, and what was seen of the stack."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.secrets = {place: f"canary{uuid.uuid4().hex}" for place in (*REFERRED, *LITERAL, *OWN)}
        self.seen: list[str] = []

    @property
    def lineage(self) -> Path:
        """The file of OpenLineage's events."""
        return self.home / "lineage" / "events.json"

    def worker(self) -> dict[str, str]:
        """Return properties of the worker's file."""
        secrets = self.home / "secrets"
        secrets.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, key, secret in (("shop", "password", "file"), ("users", USER, "user"), ("tokens", "robot", "token")):
            file = write_properties(secrets / f"{name}.properties", {key: self.secrets[secret]})
            file.chmod(0o600)
        return {
            "key.converter": "StringConverter",
            "value.converter": "StringConverter",
            "offset.flush.interval.ms": "1000",
            "config.providers": "file,env,airflow",
            "config.providers.file.class": "FileConfigProvider",
            "config.providers.file.param.allowed.paths": f"{secrets},{self.home}/demo",
            "config.providers.env.class": "EnvVarConfigProvider",
            "config.providers.airflow.class": "AirflowConfigProvider",
            "producer.sasl.jaas.config": JAAS.format(self.secrets["worker"]),
            "listeners.https.ssl.key.password": self.secrets["worker"],
            "sluiceway.rest.basic.auth.file": f"{secrets}/users.properties",
            "sluiceway.rest.bearer.token.file": f"{secrets}/tokens.properties",
            "plugin.path": f"{self.home}/plugins",
        }

    @property
    def login(self) -> tuple[str, str]:
        """The user of the REST API on its own port."""
        return USER, self.secrets["user"]

    def configs(self) -> dict[str, dict[str, str]]:
        """Return the connectors: sources in Python and in Java and a sink, which run, and one whose database does not answer."""
        spark = {
            "spark.hadoop.fs.s3a.secret.key": self.secrets["spark"],
            "spark.hadoop.fs.s3a.access.key": "${env:CONNECTOR_CANARY}",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (self.home / "events").as_uri(),
            "spark.eventLog.compress": "false",
            "spark.ui.enabled": "true",
        }
        lines = {"connector.class": "FileStreamSource", "topic": TOPIC, "file": f"{self.home}/demo/canaries.txt"}
        archive = {
            "connector.class": "FileStreamSink",
            "topics": TOPIC,
            "file": f"{self.home}/demo/canaries.out",
            "value.converter": "LongConverter",  # of no line
            "errors.tolerance": "all",
            "errors.log.enable": "true",
            "errors.deadletterqueue.topic.name": DEAD,
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        }
        shop = {
            "connector.class": "JdbcSource",
            "mode": "bulk",
            "topic.prefix": "canary-shop-",
            "connection.url": f"jdbc:postgresql://127.0.0.1:1/shop?password={self.secrets['url']}",
            "connection.user": "ada",
            "connection.attempts": "1",
            "transforms": "seal",
            "transforms.seal.type": "InsertHeader",
            "transforms.seal.header": "h",
            "transforms.seal.value.literal": "x",
        }
        file, airflow = f"${{file:{self.home}/secrets/shop.properties:password}}", "${airflow:canary:password}"
        return {
            SOURCE: {**lines, **spark, "producer.override.sasl.jaas.config": JAAS.format(file)},
            SINK: {
                **archive,
                "consumer.override.sasl.jaas.config": JAAS.format(airflow),
                "producer.override.sasl.jaas.config": JAAS.format(self.secrets["jaas"]),
                "admin.override.sasl.jaas.config": JAAS.format("${airflow:variable:CANARY}"),
            },
            SHOP: {**shop, "connection.password": self.secrets["typed"]},
            JAVA: {
                "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
                "connector.plugin.version": "4.3.0",
                "topic": JAVA,
                "file": f"{self.home}/demo/canaries.txt",
                "vendor.password": self.secrets["java"],
                "vendor.token": file,
            },
        }


@pytest.fixture(scope="module")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> Canaries:
    return Canaries(tmp_path_factory.mktemp("canaries"))


@pytest.fixture(scope="module")
def collector() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def stack(canaries: Canaries, collector: OtlpReceiver) -> Iterator[RunningStack]:
    fetch_runtime()
    plugin_folder(canaries.home / "plugins", "file", CONNECT_FILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONNECTOR_CANARY", canaries.secrets["variable"])
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        patch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer%20{canaries.secrets['collector']}")
        for folder in ("demo", "events", "lineage"):
            (canaries.home / folder).mkdir(mode=0o700, exist_ok=True)
        (canaries.home / "demo" / "canaries.txt").write_text("one\ntwo\n")
        lineage = {"type": "file", "log_file_path": str(canaries.lineage), "append": True}
        worker, settings = canaries.worker(), {"SLUICEWAY__PAUSE_LINGER": "5", "OPENLINEAGE__TRANSPORT": json.dumps(lineage)}
        running = RunningStack(canaries.home, worker=worker, settings=settings, login=canaries.login)
        try:
            running.airflow.post(
                "/connections",
                json={"connection_id": "canary", "conn_type": "generic", "password": canaries.secrets["connection"]},
            ).raise_for_status()
            variable = {"key": "CANARY", "value": canaries.secrets["airflow variable"]}
            running.airflow.post("/variables", json=variable).raise_for_status()
            yield running
        finally:
            running.close()


class User:
    """Sends requests to both REST APIs and to the page, and notes the answers that may show no literal secret either."""

    def __init__(self, stack: RunningStack, canaries: Canaries) -> None:
        self._apis = (stack.addresses.rest, f"{stack.addresses.airflow}/sluiceway")
        self._canaries = canaries
        self._http = httpx.Client(timeout=LIMIT)

    def ask(self, method: str, path: str, content: Any = None, *, shows_config: bool = False) -> None:
        """``shows_config``: the answer has a config with its secrets, as in Kafka Connect."""
        for api in self._apis[1:] if path.startswith("/ui") else self._apis:
            own = api == self._apis[0]  # which asks for credentials of either kind
            token = {"Authorization": f"Bearer {self._canaries.secrets['token']}"} if own and method == "GET" else {}
            login = self._canaries.login if own and not token else None
            answer = self._http.request(method, f"{api}{path}", json=content, headers=token, auth=login)
            text = f"{method} {api}{path} {answer.status_code}: {answer.headers} {answer.text}"
            if shows_config and answer.is_success:
                for place in LITERAL:
                    text = text.replace(self._canaries.secrets[place], "")
            self._canaries.seen.append(text)

    def look(self, name: str, config: Mapping[str, str]) -> None:
        """Request all that there is to see of a connector."""
        for path in ("", "/config", "/tasks"):
            self.ask("GET", f"/connectors/{name}{path}", shows_config=True)
        for path in ("status", "topics", "offsets", "offsets/find?to=latest", "history", "application", "dead-letters"):
            self.ask("GET", f"/connectors/{name}/{path}")
        for path in ("", "/dead-letters"):
            self.ask("GET", f"/ui/api/connectors/{name}{path}")
        plugin, named = f"/connector-plugins/{config['connector.class']}/config", {**config, "name": name}
        self.ask("PUT", f"{plugin}/validate", named, shows_config=True)
        self.ask("POST", f"{plugin}/preview?records=2&seconds=5", named, shows_config=True)

    def look_around(self) -> None:
        """Request what is not about one connector."""
        self.ask("GET", "/connectors?expand=info&expand=status", shows_config=True)
        for path in ("/", "/metrics", "/connector-plugins", "/admin/loggers", "/ui/api/overview", "/ui/api/keys"):
            self.ask("GET", path)


def test_no_secret_is_where_it_was_not_planted(
    stack: RunningStack, canaries: Canaries, collector: OtlpReceiver, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    user, configs = User(stack, canaries), canaries.configs()
    for name, config in configs.items():
        stack.mounted.create(name, config)
    for name in (SOURCE, SINK, JAVA):
        stack.await_states(name, "RUNNING", "RUNNING", within=NEVER)
    eventually(lambda: Kafka(stack.addresses.bootstrap).count(DEAD) == 2, what="the dead letter queue records")
    _change(user, configs)
    for name, config in configs.items():
        user.look(name, config)
    user.look_around()
    _use_commands(stack, canaries, configs, tmp_path, capfd)
    canaries.seen += _spark_uis(stack)
    spans = eventually(lambda: {each.name for each in collector.spans()}.issuperset(SPANS) and collector.spans(), what="spans")
    canaries.seen += map(str, (*spans, *collector.requests))
    if find_spec("openlineage") is not None:  # `make test-security` installs its provider
        eventually(lambda: _reported(canaries.lineage) >= {SOURCE, SINK, JAVA}, what="events of lineage")
    found = [*_in_processes(canaries), *_in_files(canaries), *_in_topics(stack, canaries)]
    found += [Place(place, text) for place, secret in canaries.secrets.items() for text in canaries.seen if secret in text]
    unexpected = [each for each in found if not _is_planted(each, canaries.home)]
    FIGURES.append(
        f"{len(canaries.secrets)} secrets on a stack: {len(canaries.seen)} answers, {len(found)} places where they belong"
    )
    assert unexpected == []
    assert {each.secret for each in found} == set(canaries.secrets), "each was looked for where it was planted"
    assert _open_files(canaries, found) == []


def _change(user: User, configs: Mapping[str, Mapping[str, str]]) -> None:
    """Do what makes entries in histories and logs."""
    for name, config in configs.items():
        user.ask("PUT", f"/connectors/{name}/config", {**config, "tasks.max": "none", "file": ["bad"]})
        user.ask("PATCH", f"/connectors/{name}/config", {"airflow.tags": "canary"}, shows_config=True)
        user.ask("POST", f"/connectors/{name}/rollback", {"version": 1}, shows_config=True)
        user.ask("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=false")
    for method, path, body in (
        ("PUT", "stop", None),
        ("PATCH", "offsets", {"offsets": [{"partition": {"x": 1}, "offset": {"y": 2}}]}),
        ("PUT", "resume", None),
        ("POST", "signals", {"type": "log"}),
    ):
        user.ask(method, f"/connectors/{SHOP}/{path}", body)


def _use_commands(
    stack: RunningStack,
    canaries: Canaries,
    configs: Mapping[str, Mapping[str, str]],
    folder: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    file, server = folder / "connector.properties", stack.addresses.rest.replace("//", "//{}:{}@".format(*canaries.login))
    for name, config in configs.items():
        file.write_text("".join(f"{key}={value}\n" for key, value in {"name": name, **config, "tasks.max": "2"}.items()))
        for command in (
            ("diff", "-f", str(file)),
            ("apply", "-f", str(file), "--dry-run"),
            ("validate", "-f", str(file)),
            ("patch", name, "--dry-run", "--set", "tasks.max=2"),
            *((*words.split(), name) for words in COMMANDS),
        ):
            main([*command, "--server", server])
    for more in ((), ("--json",), ("--connect-worker-config", str(canaries.home / "given.properties"))):
        main(["migrate", "--from", server, "--to", f"{stack.addresses.airflow}/sluiceway", *more])
    for verb in (["list"], ["show", SINK]):
        main(["dlq", *verb, "--worker", stack.addresses.worker_file])
    canaries.seen.append("".join(capfd.readouterr()))


def _spark_uis(stack: RunningStack) -> list[str]:
    """Return the pages of Spark's UI that show settings."""
    jvm = stack.jvm(SOURCE)
    assert jvm is not None
    ports = [each.laddr.port for each in jvm.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
    pages = []
    with httpx.Client(timeout=LIMIT, follow_redirects=True) as http:
        for port in ports:
            try:
                applications = http.get(f"http://127.0.0.1:{port}/api/v1/applications").json()
            except (httpx.HTTPError, ValueError):  # Spark's other ports are no web servers
                continue
            paths = ("/environment/", "/jobs/", f"/api/v1/applications/{applications[0]['id']}/environment")
            pages += [http.get(f"http://127.0.0.1:{port}{path}").text for path in paths]
    assert any("spark.hadoop.fs.s3a.secret.key" in page for page in pages)
    return pages


def _reported(file: Path) -> set[str]:
    """Return the DAGs whose tasks have reported data sets to OpenLineage."""
    events = map(json.loads, file.read_text().splitlines() if file.exists() else ())
    return {each["job"]["name"].split(".")[0] for each in events if each.get("inputs") or each.get("outputs")}


def _in_processes(canaries: Canaries) -> Iterator[Place]:
    for process in psutil.process_iter():
        for kind, read in (("command line of", process.cmdline), ("environment of", process.environ)):
            try:
                content = str(read())
                what = " ".join(process.cmdline())
            except psutil.Error:
                continue
            if process.pid != os.getpid():
                yield from _within(canaries, content, f"{kind} {what}")


def _in_files(canaries: Canaries) -> Iterator[Place]:
    for path in canaries.home.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield from _within(canaries, path.read_bytes().decode(errors="replace"), str(path))


def _in_topics(stack: RunningStack, canaries: Canaries) -> Iterator[Place]:
    consumer = Consumer({"bootstrap.servers": stack.addresses.bootstrap, "group.id": "canaries", "enable.auto.commit": False})
    try:
        topics = consumer.list_topics(timeout=10).topics
        places = [TopicPartition(name, number, 0) for name, topic in topics.items() for number in topic.partitions]
        consumer.assign(places)
        while message := consumer.poll(5):
            content = f"{message.key()!r} {message.value()!r} {message.headers()}"
            yield from _within(canaries, content, f"topic {message.topic()}")
    finally:
        consumer.close()


def _within(canaries: Canaries, content: str, where: str) -> Iterable[Place]:
    return [Place(place, where) for place, secret in canaries.secrets.items() if secret in content]


def _is_planted(place: Place, home: Path) -> bool:
    """Return whether a secret was planted there, or SECURITY.md says that it is there."""
    name, where = place
    rules: dict[str, Callable[[], bool]] = {
        "file": lambda: where == f"{home}/secrets/shop.properties",
        "variable": lambda: where.startswith("environment of"),
        "worker": lambda: where.endswith(".properties"),
        "user": lambda: where == f"{home}/secrets/users.properties",
        "token": lambda: where == f"{home}/secrets/tokens.properties",
        "collector": lambda: where.startswith("environment of"),
        # Airflow's own; and the environment of the driver and what it starts.
        "connection": lambda: where.startswith((f"{home}/airflow/airflow.db", "environment of")),
        "airflow variable": lambda: where.startswith((f"{home}/airflow/airflow.db", "environment of")),
    }
    if name in LITERAL:  # as in Kafka Connect: the config topic, and the broker's files of it
        return where == "topic connect-configs" or where.startswith(f"{home}/broker/data/connect-configs-0/")
    return rules[name]()


def _open_files(canaries: Canaries, found: Iterable[Place]) -> list[str]:
    """Return the files with secrets whose own mode lets other users read them, besides the user's own worker file."""
    files = {Path(each.where) for each in found if each.where.startswith(str(canaries.home))}
    written = sorted(files - {canaries.home / "given.properties"})
    return [str(file) for file in written if file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)]
