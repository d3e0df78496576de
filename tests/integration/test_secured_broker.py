"""Worker files with Java's security settings on a real Kafka with TLS and SASL."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from sluiceway.config.properties import parse_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import KafkaClientError
from sluiceway.kafka.admin import partition_count
from sluiceway.kafka.clients import admin_client, consumer, consumer_config, producer, producer_config
from sluiceway.kafka.errors import mapped_errors
from sluiceway.rest.client import ConnectClient
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.stack.ports import free_port
from support.airflow_home import isolate_airflow
from support.certificates import Authority
from support.driver import worker_properties, write_properties
from support.eventually import LIMIT, eventually

pytestmark = pytest.mark.kafka

STORE_PASSWORD = "store-hunter2"
PASSWORD = "p;w='\\ \"hunter2"  # characters that need escapes in a JAAS config
PACKAGE = "org.apache.kafka.common.security"
MECHANISMS = {
    "PLAIN": f"{PACKAGE}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{PACKAGE}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{PACKAGE}.scram.ScramLoginModule",
}
SECONDS = 15.0


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def jaas(mechanism: str, user: str = "alice", password: str = PASSWORD) -> str:
    if mechanism == "OAUTHBEARER":
        return f'{PACKAGE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{user}";'
    return f"{MECHANISMS[mechanism]} required username={quoted(user)} password={quoted(password)};"


@dataclass(frozen=True)
class Secured:
    """The broker's listeners and the files that clients need."""

    sasl_ssl: str
    ssl: str
    sasl_plaintext: str
    folder: Path
    authority: Authority

    def store(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority("Broker CA")
    _write_stores(folder, authority)
    ports = {name: free_port() for name in ("PLAINTEXT", "SASL_SSL", "SSL", "SASL_PLAINTEXT", "CONTROLLER")}
    broker = EmbeddedBroker(folder / "broker", port=ports["PLAINTEXT"], properties=_settings(folder, ports))
    try:
        _add_scram_users(broker.start())
        addresses = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        yield Secured(addresses["SASL_SSL"], addresses["SSL"], addresses["SASL_PLAINTEXT"], folder, authority)
    finally:
        broker.stop()


def _write_stores(folder: Path, authority: Authority) -> None:
    (folder / "broker.p12").write_bytes(authority.keystore("broker", STORE_PASSWORD))
    (folder / "client.p12").write_bytes(authority.keystore("client", STORE_PASSWORD))
    (folder / "ca.pem").write_text(authority.pem)
    (folder / "other-ca.pem").write_text(Authority("Other CA").pem)
    (folder / "trust.p12").write_bytes(authority.java_truststore(STORE_PASSWORD))
    chain, key = authority.issue("client", password=STORE_PASSWORD)
    (folder / "client.pem").write_text(chain + key)


def _settings(folder: Path, ports: Mapping[str, int]) -> dict[str, str]:
    listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    settings = {
        "listeners": listeners,
        "advertised.listeners": listeners.rpartition(",")[0],
        "controller.quorum.voters": f"1@127.0.0.1:{ports['CONTROLLER']}",
        "listener.security.protocol.map": ",".join(f"{name}:{name}" for name in ports if name != "CONTROLLER")
        + ",CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(folder / "broker.p12"),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.ssl.ssl.client.auth": "required",
    }
    for listener in ("sasl_ssl", "sasl_plaintext"):
        prefix = f"listener.name.{listener}"
        settings[f"{prefix}.sasl.enabled.mechanisms"] = f"{','.join(MECHANISMS)},OAUTHBEARER"
        users = f"user_alice={quoted(PASSWORD)}"
        settings[f"{prefix}.plain.sasl.jaas.config"] = f"{MECHANISMS['PLAIN']} required {users};"
        settings[f"{prefix}.oauthbearer.sasl.jaas.config"] = jaas("OAUTHBEARER", "broker")
        for scram in ("scram-sha-256", "scram-sha-512"):
            settings[f"{prefix}.{scram}.sasl.jaas.config"] = f"{PACKAGE}.scram.ScramLoginModule required;"
    return settings


def _add_scram_users(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):  # Kafka accepts one per request for a user
        user = UserScramCredentialUpsertion("alice", ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
        for future in admin.alter_user_scram_credentials([user]).values():
            future.result(SECONDS)


def round_trip(worker: WorkerConfig, overrides: Mapping[str, str] | None = None) -> None:
    """Produce a record, consume it, and describe its topic with an admin client."""
    topic = f"t-{uuid.uuid4().hex[:8]}"
    writing = producer(producer_config(worker, "w", {**(overrides or {}), "delivery.timeout.ms": str(int(SECONDS * 1000))}))
    failures: list[object] = []
    writing.produce(topic, b"value", on_delivery=lambda error, _message: failures.append(error) if error else None)
    assert writing.flush(SECONDS + 5) == 0
    assert failures == []
    reading = consumer(consumer_config(worker, "r", f"g-{topic}", overrides))
    try:
        reading.subscribe([topic])
        message = reading.poll(SECONDS)
        assert message is not None
        assert message.error() is None
        assert message.value() == b"value"
    finally:
        reading.close()
    assert partition_count(admin_client(worker, overrides), topic) == 1


def cluster_of(worker: WorkerConfig) -> object:
    with mapped_errors("list topics"):
        return admin_client(worker).list_topics(timeout=4).cluster_id


@pytest.mark.parametrize("mechanism", [*MECHANISMS, "OAUTHBEARER"])
def test_a_worker_logs_in_with_its_jaas_config_over_tls(secured: Secured, mechanism: str) -> None:
    round_trip(
        WorkerConfig.of(
            {
                "bootstrap.servers": secured.sasl_ssl,
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": mechanism,
                "sasl.jaas.config": jaas(mechanism),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": secured.store("ca.pem"),
            }
        )
    )


def test_each_client_of_a_worker_file_may_have_its_own_login(secured: Secured) -> None:
    trust = f"ssl.truststore.location={secured.store('trust.p12')}\nssl.truststore.password={STORE_PASSWORD}\n"
    lines = [f"bootstrap.servers={secured.sasl_ssl}\nsecurity.protocol=SASL_SSL\n{trust}"]
    for client, mechanism in (("producer", "PLAIN"), ("consumer", "SCRAM-SHA-512"), ("admin", "SCRAM-SHA-256")):
        escaped = jaas(mechanism).replace("\\", "\\\\")
        lines.append(f"{client}.sasl.mechanism={mechanism}\n{client}.sasl.jaas.config={escaped}\n")
    round_trip(WorkerConfig.of(parse_properties("".join(lines).encode("latin-1"))))


def test_a_connectors_overrides_log_in_where_the_worker_has_no_login(secured: Secured) -> None:
    worker = WorkerConfig.of({"bootstrap.servers": secured.sasl_ssl})
    overrides = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": jaas("SCRAM-SHA-256"),
        "ssl.truststore.certificates": secured.authority.pem.replace("\n", " "),
    }
    round_trip(worker, overrides)


@pytest.mark.parametrize("store", ["client.p12", "client.pem", "inline"])
def test_a_client_sends_its_certificate(secured: Secured, store: str) -> None:
    properties = {
        "bootstrap.servers": secured.ssl,
        "security.protocol": "SSL",
        "ssl.truststore.location": secured.store("ca.pem"),
        "ssl.key.password": STORE_PASSWORD,
    }
    if store == "inline":
        chain, key = secured.authority.issue("client", password=STORE_PASSWORD)
        properties |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    else:
        properties |= {"ssl.keystore.location": secured.store(store), "ssl.keystore.password": STORE_PASSWORD}
    round_trip(WorkerConfig.of(properties))


@pytest.mark.skipif(shutil.which("keytool") is None, reason="needs a JDK's keytool")
@pytest.mark.parametrize("store_type", ["JKS", "PKCS12"])
def test_a_trust_store_made_by_keytool_is_read(secured: Secured, tmp_path: Path, store_type: str) -> None:
    store = tmp_path / "trust.jks"
    command = ["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", secured.store("ca.pem"), "-keystore", str(store)]
    subprocess.run([*command, "-storetype", store_type, "-storepass", STORE_PASSWORD], check=True, capture_output=True)
    properties = {
        "bootstrap.servers": secured.sasl_ssl,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": jaas("PLAIN"),
        "ssl.truststore.location": str(store),
        "ssl.truststore.password": STORE_PASSWORD,
    }
    assert cluster_of(WorkerConfig.of(properties))


@pytest.mark.parametrize("wrong", ["password", "authority"])
def test_a_wrong_password_and_an_unknown_authority_are_refused_without_secrets_in_errors(
    secured: Secured, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    properties = {
        "bootstrap.servers": secured.sasl_ssl,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": jaas("PLAIN", password="wrong-hunter2" if wrong == "password" else PASSWORD),
        "ssl.truststore.location": secured.store("other-ca.pem" if wrong == "authority" else "ca.pem"),
    }
    with pytest.raises(KafkaClientError) as caught:
        cluster_of(WorkerConfig.of(properties))
    assert "hunter2" not in f"{caught.value}{caplog.text}"


def test_the_brokers_name_is_checked_unless_the_check_is_turned_off(secured: Secured) -> None:
    host_not_in_certificate = f"localhost:{secured.ssl.rpartition(':')[2]}"
    properties = {
        "bootstrap.servers": host_not_in_certificate,
        "security.protocol": "SSL",
        "ssl.truststore.location": secured.store("ca.pem"),
        "ssl.keystore.location": secured.store("client.p12"),
        "ssl.keystore.password": STORE_PASSWORD,
    }
    with pytest.raises(KafkaClientError):
        cluster_of(WorkerConfig.of(properties))
    assert cluster_of(WorkerConfig.of({**properties, "ssl.endpoint.identification.algorithm": ""}))


def test_a_login_without_tls_needs_no_certificates(secured: Secured) -> None:
    round_trip(
        WorkerConfig.of(
            {
                "bootstrap.servers": secured.sasl_plaintext,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": jaas("SCRAM-SHA-512"),
                "ssl.keystore.location": "/no/such/file.jks",
            }
        )
    )


@pytest.mark.long
def test_a_rest_server_with_a_secured_worker_file_works_and_logs_no_secret(secured: Secured, tmp_path: Path) -> None:
    escaped = jaas("SCRAM-SHA-512").replace("\\", "\\\\")
    properties = {
        "bootstrap.servers": secured.sasl_ssl,
        "group.id": f"g-{uuid.uuid4().hex[:8]}",
        "listeners": "http://127.0.0.1:0",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": escaped,
        "ssl.truststore.location": secured.store("trust.p12"),
        "ssl.truststore.password": STORE_PASSWORD,
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
    }
    worker_file, log = tmp_path / "worker.properties", tmp_path / "rest.log"
    worker_file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    with log.open("w") as output:
        command = [sys.executable, "-m", "sluiceway.cli.main", "rest", str(worker_file)]
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        eventually(lambda: "REST API is listening on http" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        with ConnectClient(log.read_text().split("REST API is listening on ")[1].split()[0].rstrip(",")) as client:
            client.create("a", {"connector.class": "FileStreamSource", "topic": "t"}, "STOPPED")
            assert client.connectors() == ["a"]
    finally:
        process.terminate()
        process.wait(LIMIT)
    assert "hunter2" not in log.read_text()


class _Task:
    """The parts of an Airflow context that an operator uses: task instance, unpaused DAG, outlets."""

    dag_id = "copy"

    def get_dag(self, dag_id: str) -> Any:
        return SimpleNamespace(is_paused=False)

    def xcom_push(self, key: str, value: Any) -> None: ...

    def __getitem__(self, alias: object) -> Any:
        return SimpleNamespace(add=lambda *_, **__: None)


def _command_lines() -> str:
    lines = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            lines += process.cmdline()
    return " ".join(lines)


@pytest.mark.long
def test_an_operators_connection_authenticates_driver_and_tasks_without_showing_secrets(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker file alone cannot connect: all security settings come from the Airflow connection."""
    monkeypatch.setenv("HOME", str(tmp_path))
    isolate_airflow()
    from sluiceway.operators import SourceConnectorOperator

    extra = {
        "bootstrap.servers": secured.sasl_ssl,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": secured.store("ca.pem"),
    }
    monkeypatch.setenv("AIRFLOW_CONN_BROKER", json.dumps({"conn_type": "kafka_connect", "extra": extra}))
    monkeypatch.setenv("AIRFLOW_CONN_LOCAL", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    topic, lines = f"t-{uuid.uuid4().hex[:8]}", tmp_path / "lines.txt"
    lines.write_text("one\ntwo\nthree\n")
    worker_file = write_properties(tmp_path / "worker.properties", worker_properties("127.0.0.1:1", f"g-{topic}"))
    operator = SourceConnectorOperator(
        task_id="copy",
        mode="micro-batch",
        kafka_conn_id="broker",
        conn_id="local",
        worker_properties=str(worker_file),
        config={"name": topic, "connector.class": "FileStreamSource", "file": str(lines), "topic": topic},
    )
    seen: list[str] = []
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.2):
            seen.append(_command_lines())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        with caplog.at_level("DEBUG"):
            task: Any = _Task()
            moved = operator.execute({"ti": task, "outlet_events": task})
    finally:
        done.set()
        looking.join()
    assert moved["records"] == 3
    assert any("driver_app.py" in each for each in seen)
    assert "hunter2" not in "".join(seen)
    assert "hunter2" not in caplog.text
