"""The registry converters against a Schema Registry over HTTP."""

from __future__ import annotations

import datetime as dt
import io
import ipaddress
import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sluiceway.api import NULL, Converter
from sluiceway.converters.registry.avro import AvroConverter
from sluiceway.converters.registry.client import RegistryClient
from sluiceway.converters.registry.json_schema import JsonSchemaConverter
from sluiceway.converters.registry.protobuf import ProtobufConverter
from sluiceway.data import INT32_SCHEMA, STRING_SCHEMA, Schema, Struct, Type
from sluiceway.errors import ConfigError, DataError, RetriableError
from support.schema_registry import Registry, schema_registry

CONVERTERS = [AvroConverter, JsonSchemaConverter, ProtobufConverter]
USER = Schema.struct({"name": STRING_SCHEMA, "age": INT32_SCHEMA}, name="com.example.User")
ANN = Struct(USER, {"name": "Ann", "age": 7})
QUICK = {"max.retries": "0", "retries.wait.ms": "1", "retries.max.wait.ms": "1"}


@pytest.fixture
def registry() -> Iterator[Registry]:
    with schema_registry() as running:
        yield running


def converter(cls: type[Converter], registry: Registry, options: Mapping[str, str] | None = None, *, is_key: bool = False) -> Any:
    made = cls()
    made.configure({"schema.registry.url": registry.url, **QUICK, **(options or {})}, is_key=is_key)
    return made


def avro(node: Any, value: Any, schema_id: int) -> bytes:
    out = io.BytesIO(struct.pack(">bI", 0, schema_id))
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, fastavro.parse_schema(node), value)
    return out.getvalue()


@pytest.mark.parametrize("cls", CONVERTERS)
def test_a_record_is_registered_written_and_read(cls: type[Converter], registry: Registry) -> None:
    writer, reader = converter(cls, registry), converter(cls, registry)
    first, second = (writer.from_connect_data("users", USER, ANN) for _ in range(2))
    assert first == second
    assert first[:5] == b"\x00\x00\x00\x00\x01"
    assert registry.subjects.keys() == {"users-value"}
    schema, value = reader.to_connect_data("users", first)
    assert dict(value) == {"name": "Ann", "age": 7}
    assert schema.version == 1


@pytest.mark.parametrize("cls", CONVERTERS)
def test_a_preview_registers_nothing(cls: type[Converter], registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
    shown = cls()
    shown.for_preview()
    shown.configure({"schema.registry.url": registry.url, **QUICK})
    unregistered = shown.from_connect_data("users", USER, ANN)
    assert unregistered is not None
    assert unregistered[:5] == b"\x00\x00\x00\x00\x00"
    assert registry.subjects == {}
    assert "Subject users-value has no such schema yet" in caplog.text

    written = converter(cls, registry).from_connect_data("users", USER, ANN)
    again = cls()
    again.for_preview()
    again.configure({"schema.registry.url": registry.url, **QUICK})
    assert again.from_connect_data("users", USER, ANN) == written


@pytest.mark.parametrize("cls", CONVERTERS)
def test_many_records_need_one_request_per_direction(cls: type[Converter], registry: Registry) -> None:
    made = converter(cls, registry)
    encode, decode = made.encoder("users", USER), made.decoder("users")
    records = [encode(Struct(USER, {"name": "n" * size, "age": size})) for size in range(20)]
    assert [method for method, _path in registry.requests] == ["POST"]
    assert [decode(record)[1]["age"] for record in records] == list(range(20))
    assert registry.requests[1:] == [("GET", "/schemas/ids/1"), ("POST", "/subjects/users-value")]
    assert len({id(decode(record)[0]) for record in records}) == 1


@pytest.mark.parametrize("cls", CONVERTERS)
def test_later_records_equal_the_librarys_serialization(cls: type[Converter], registry: Registry) -> None:
    short_way, own_way = converter(cls, registry).encoder("t", USER), converter(cls, registry)
    short_way(ANN)
    for age in (0, -5, 10**6):
        record = Struct(USER, {"name": "é", "age": age})
        fresh = own_way._new_encoder("t", USER)
        assert short_way(record) == fresh(record)


@pytest.mark.parametrize("cls", CONVERTERS)
def test_only_the_first_record_goes_through_the_librarys_serializer(
    cls: type[Converter], registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    make = RegistryClient.serializer

    def counting(self: RegistryClient, *arguments: Any) -> Any:
        serialize = make(self, *arguments)

        def serialize_and_count(value: Any) -> bytes:
            calls.append(value)
            return serialize(value)

        return serialize_and_count

    monkeypatch.setattr(RegistryClient, "serializer", counting)
    encode = converter(cls, registry).encoder("t", USER)
    assert len({encode(ANN) for _ in range(3)}) == 1
    assert len(calls) == 1


@pytest.mark.parametrize("cls", CONVERTERS)
def test_null_stays_null_without_a_request(cls: type[Converter]) -> None:
    made = cls()
    made.configure({"schema.registry.url": "http://nowhere.invalid"}, is_key=False)
    optional = Schema.struct({"a": INT32_SCHEMA}, name="A", optional=True)
    assert made.from_connect_data("t", optional, None) is None
    assert made.to_connect_data("t", None) == NULL


def test_avro_is_compatible_with_other_implementations(registry: Registry) -> None:
    node = {
        "type": "record",
        "name": "User",
        "namespace": "com.example",
        "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": "int"}],
        "connect.name": "com.example.User",
    }
    schema_id = registry.register("users-value", node)
    theirs = avro(node, {"name": "Ann", "age": 7}, schema_id)
    made = converter(AvroConverter, registry)
    assert dict(made.to_connect_data("users", theirs).value) == {"name": "Ann", "age": 7}
    assert made.from_connect_data("users", USER, ANN) == theirs  # the schema is the same, and so is its id


def test_json_frame_and_payload_are_bare(registry: Registry) -> None:
    data = converter(JsonSchemaConverter, registry).from_connect_data("users", USER, ANN)
    assert (data[:5], json.loads(data[5:])) == (b"\x00\x00\x00\x00\x01", {"name": "Ann", "age": 7})


def test_protobuf_frame_has_message_indexes(registry: Registry) -> None:
    made = converter(ProtobufConverter, registry)
    assert made.from_connect_data("users", USER, ANN) == b"\x00\x00\x00\x00\x01\x00\x0a\x03Ann\x10\x07"
    key = converter(ProtobufConverter, registry, is_key=True)
    data = key.from_connect_data("users", STRING_SCHEMA, "k")
    assert data.endswith(b"\x0a\x01k")
    assert key.to_connect_data("users", data) == (Schema(Type.STRING, version=1), "k")
    assert set(registry.subjects) == {"users-value", "users-key"}


@pytest.mark.parametrize("cls", CONVERTERS)
@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("TopicNameStrategy", "users-value"),
        ("io.confluent.kafka.serializers.subject.RecordNameStrategy", "com.example.User"),
        ("TopicRecordNameStrategy", "users-com.example.User"),
    ],
)
def test_subjects_are_named_by_the_strategy(cls: type[Converter], registry: Registry, strategy: str, subject: str) -> None:
    made = converter(cls, registry, {"value.subject.name.strategy": strategy})
    data = made.from_connect_data("users", USER, ANN)
    assert list(registry.subjects) == [subject]
    assert made.to_connect_data("users", data).schema.version == 1


def test_a_schema_without_a_name_has_no_record_subject(registry: Registry) -> None:
    made = converter(AvroConverter, registry, {"value.subject.name.strategy": "RecordNameStrategy"})
    with pytest.raises(DataError, match=r"schema of topic t has no name.*SetSchemaMetadata"):
        made.from_connect_data("t", STRING_SCHEMA, "x")


def test_without_auto_register_the_schema_must_exist(registry: Registry) -> None:
    made = converter(AvroConverter, registry, {"auto.register.schemas": "false"})
    with pytest.raises(DataError, match=r"users.*40401"):
        made.from_connect_data("users", USER, ANN)
    converter(AvroConverter, registry).from_connect_data("users", USER, ANN)
    assert made.from_connect_data("users", USER, ANN)[:5] == b"\x00\x00\x00\x00\x01"


def test_use_latest_version_writes_with_the_latest_schema(registry: Registry) -> None:
    node = {
        "type": "record",
        "name": "User",
        "fields": [
            {"name": "age", "type": "long"},
            {"name": "name", "type": "string"},
            {"name": "x", "type": "string", "default": "-"},
        ],
    }
    schema_id = registry.register("users-value", node)
    options = {"auto.register.schemas": "false", "use.latest.version": "true"}
    made = converter(AvroConverter, registry, options)
    for _ in range(2):
        assert made.from_connect_data("users", USER, ANN) == avro(node, {"age": 7, "name": "Ann"}, schema_id)
    registry.register("other-value", {"type": "record", "name": "O", "fields": [{"name": "must", "type": "string"}]})
    with pytest.raises(DataError, match="other"):
        made.from_connect_data("other", USER, ANN)


def test_each_record_is_serialized_with_the_latest_version(registry: Registry) -> None:
    schema = Schema.struct({"a": INT32_SCHEMA, "b": INT32_SCHEMA}, name="n.P")
    fields = [{"name": name, "type": "int"} for name in ("b", "a")]
    registry.register("t-value", {"type": "record", "name": "P", "namespace": "n", "fields": fields})
    made = converter(AvroConverter, registry, {"auto.register.schemas": "false", "use.latest.version": "true"})
    records = [made.from_connect_data("t", schema, Struct(schema, {"a": 1, "b": b})) for b in (1, 2)]
    assert [record[5:] for record in records] == [b"\x02\x02", b"\x04\x02"]


@pytest.mark.parametrize("cls", CONVERTERS)
@pytest.mark.parametrize("choice", [{"use.schema.id": "1"}, {"use.latest.version": "true"}])
def test_a_schema_of_the_registry_is_used_without_registering(
    cls: type[Converter], registry: Registry, choice: dict[str, str]
) -> None:
    registered = converter(cls, registry).from_connect_data("users", USER, ANN)
    made = converter(cls, registry, {"auto.register.schemas": "false", **choice})
    for _ in range(2):
        assert made.from_connect_data("users", USER, ANN) == registered
    assert len(registry.ids) == 1


def test_an_incompatible_schema_is_refused_with_the_registrys_reason(registry: Registry) -> None:
    made = converter(AvroConverter, registry)
    made.from_connect_data("users", USER, ANN)
    wider = Schema.struct({"name": STRING_SCHEMA, "extra": INT32_SCHEMA}, name="com.example.User")
    value = Struct(wider, {"name": "x", "extra": 1})
    with pytest.raises(ConfigError, match=r"Failed to access Avro data from topic users.*incompatible"):
        made.from_connect_data("users", wider, value)
    registry.handle("PUT", "/config/users-value", {"compatibility": "NONE"})
    assert made.from_connect_data("users", wider, value)[:5] == b"\x00\x00\x00\x00\x02"


@pytest.mark.parametrize("cls", CONVERTERS)
def test_an_error_of_a_busy_registry_is_retriable(cls: type[Converter], registry: Registry) -> None:
    made = converter(cls, registry)
    registry.fail(503)
    with pytest.raises(RetriableError, match="users"):
        made.from_connect_data("users", USER, ANN)
    data = made.from_connect_data("users", USER, ANN)
    registry.fail(500, code=50001)
    with pytest.raises(RetriableError, match="users"):
        made.to_connect_data("users", data)
    assert dict(made.to_connect_data("users", data).value) == dict(ANN)


def test_the_client_retries(registry: Registry) -> None:
    registry.fail(503, times=2)
    made = converter(AvroConverter, registry, {"max.retries": "2"})
    assert made.from_connect_data("users", USER, ANN)


def test_an_unreachable_registry_is_retriable_and_the_next_url_is_tried(registry: Registry) -> None:
    lost = "http://127.0.0.1:9"  # the discard port: nothing listens
    made = converter(AvroConverter, registry, {"schema.registry.url": lost})
    with pytest.raises(RetriableError, match=r"network connection error.*schema\.registry\.url"):
        made.from_connect_data("users", USER, ANN)
    made = converter(AvroConverter, registry, {"schema.registry.url": f"{lost},{registry.url}"})
    assert made.from_connect_data("users", USER, ANN)


def test_credentials_are_sent_and_not_shown_in_errors() -> None:
    with schema_registry(user_info="me:s3cret") as registry:
        source = {"basic.auth.credentials.source": "USER_INFO"}
        made = converter(AvroConverter, registry, {**source, "basic.auth.user.info": "me:s3cret"})
        assert made.from_connect_data("users", USER, ANN)
        in_url = registry.url.replace("http://", "http://me:s3cret@")
        assert converter(AvroConverter, registry, {"schema.registry.url": in_url}).from_connect_data("users", USER, ANN)
        wrong = converter(AvroConverter, registry, {**source, "basic.auth.user.info": "me:wr0ng"})
        with pytest.raises(ConfigError, match="Unauthorized") as caught:
            wrong.from_connect_data("users", USER, ANN)
        cause: BaseException | None = caught.value
        texts = []
        while cause is not None:
            texts.append(str(cause))
            cause = cause.__cause__
        assert "wr0ng" not in "".join(texts)


def test_tls_trusts_the_certificates_in_the_pem_file_and_no_others(tmp_path: Path) -> None:
    pem = self_signed(tmp_path / "registry.pem")
    with schema_registry(pem=pem) as registry:
        trusting = {"schema.registry.ssl.truststore.location": str(pem), "schema.registry.ssl.truststore.type": "PEM"}
        assert converter(AvroConverter, registry, trusting).from_connect_data("users", USER, ANN)
        with pytest.raises(RetriableError, match="network connection error"):
            converter(AvroConverter, registry).from_connect_data("users", USER, ANN)
        missing = {"schema.registry.ssl.truststore.location": str(tmp_path / "none.pem")}
        with pytest.raises(ConfigError, match="Check the PEM files"):
            converter(AvroConverter, registry, missing).from_connect_data("users", USER, ANN)


def self_signed(path: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "registry")])
    now = dt.datetime.now(dt.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.mark.parametrize("cls", CONVERTERS)
def test_bytes_without_the_frame_are_refused(cls: type[Converter], registry: Registry) -> None:
    made = converter(cls, registry)
    for data in (b"", b"\x00\x00", b"hello world", b'{"a":1}'):
        with pytest.raises(DataError, match=r"topic t to .*Unknown magic byte!"):
            made.to_connect_data("t", data)
    with pytest.raises(DataError, match="40403"):
        made.to_connect_data("t", b"\x00\x00\x00\x00\x63rest")


@pytest.mark.parametrize("cls", CONVERTERS)
def test_bytes_that_do_not_match_their_schema_are_refused_with_topic_and_id(cls: type[Converter], registry: Registry) -> None:
    made = converter(cls, registry)
    data = made.from_connect_data("t", USER, ANN)
    with pytest.raises(DataError, match=r"topic t to .* with schema 1"):
        made.to_connect_data("t", data[:-3])


def test_a_schema_of_another_type_is_refused(registry: Registry) -> None:
    data = converter(JsonSchemaConverter, registry).from_connect_data("t", USER, ANN)
    with pytest.raises(DataError, match="has type JSON, not AVRO"):
        converter(AvroConverter, registry).to_connect_data("t", data)


def test_a_topic_copied_to_another_name_is_read_without_a_version(registry: Registry) -> None:
    made = converter(AvroConverter, registry)
    data = made.from_connect_data("users", USER, ANN)
    assert made.to_connect_data("copy-of-users", data) == (USER, ANN)


def test_referenced_schemas_are_fetched(registry: Registry) -> None:
    inner = {"type": "record", "name": "Inner", "namespace": "n", "fields": [{"name": "x", "type": "int"}]}
    outer = {"type": "record", "name": "Outer", "namespace": "n", "fields": [{"name": "i", "type": "n.Inner"}]}
    registry.register("inner", inner)
    body = {"schema": json.dumps(outer), "references": [{"name": "n.Inner", "subject": "inner", "version": 1}]}
    schema_id = registry.handle("POST", "/subjects/t-value/versions", body)["id"]
    data = struct.pack(">bI", 0, schema_id) + b"\x0a"
    schema, value = converter(AvroConverter, registry).to_connect_data("t", data)
    assert (schema.name, value["i"]["x"]) == ("n.Outer", 5)


def test_records_of_several_schemas_are_read_in_turn(registry: Registry) -> None:
    made = converter(AvroConverter, registry, {"schemas.cache.config": "2"})
    schemas = [Schema.struct({f"f{n}": Schema(Type.INT32, optional=True)}, name=f"n.T{n}") for n in range(4)]
    registry.handle("PUT", "/config", {"compatibility": "NONE"})
    data = [made.from_connect_data("t", schema, Struct(schema, {f"f{n}": n})) for n, schema in enumerate(schemas)]
    for _ in range(2):
        assert [made.to_connect_data("t", record).value[f"f{n}"] for n, record in enumerate(data)] == [0, 1, 2, 3]


def test_primitive_keys_are_avro(registry: Registry) -> None:
    made = converter(AvroConverter, registry, is_key=True)
    for schema, value, data in (
        (STRING_SCHEMA, "k", b"\x02k"),
        (Schema(Type.INT64), 3, b"\x06"),
        (Schema(Type.BYTES), b"x", b"x"),
    ):
        registry.handle("PUT", "/config", {"compatibility": "NONE"})
        record = made.from_connect_data("t", schema, value)
        assert record[5:] == data
        assert made.to_connect_data("t", record).value == value
    assert list(registry.subjects) == ["t-key"]


def test_schemaless_values_use_connects_avro_any_schema(registry: Registry) -> None:
    made = converter(AvroConverter, registry)
    data = made.from_connect_data("t", None, {"a": [1, None, "x"]})
    assert made.to_connect_data("t", data) == (None, {"a": [1, None, "x"]})
    assert made.from_connect_data("t", None, None) is None


def test_a_required_null_is_refused(registry: Registry) -> None:
    with pytest.raises(DataError, match=r"topic t: Found null value for non-optional schema Schema\{com\.example\.User:STRUCT\}"):
        converter(AvroConverter, registry).from_connect_data("t", USER, None)
    with pytest.raises(DataError, match=r"topic t: .*null value for field"):
        converter(JsonSchemaConverter, registry).from_connect_data("t", USER, None)
    assert converter(ProtobufConverter, registry).from_connect_data("t", USER, None) is None
