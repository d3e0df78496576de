"""Defines the keys of each kind of storage: a path, or those of Confluent's sinks for HDFS, S3, GCS and Azure."""

from __future__ import annotations

import json
import re

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.password import Password
from sluiceway.config.validators import Check, EachOf, NonEmptyString, OneOf, OrNull, Range
from sluiceway.connectors.files import common_config as common
from sluiceway.connectors.files import keys
from sluiceway.connectors.files.common_config import flag, long, one_of_classes, secret, text, whole
from sluiceway.errors import ConfigError

SCHEMES = ("file", "hdfs", "viewfs", "sftp", "s3", "gs", "abfs")
CONFLUENT_FORMATS = {
    "ParquetFormat": "ParquetFormat",
    "AvroFormat": "AvroFormat",
    "JsonFormat": "JsonFormat",
    "StringFormat": "TextFormat",
    "ByteArrayFormat": "BytesFormat",
    "OrcFormat": "OrcFormat",
}
_STORAGE, _SECURITY, _REFUSED = "Storage", "Security", "Not supported"
_SCHEME = re.compile(r"([a-z0-9]+)://")
_PUBLIC_KEY = re.compile(r"[a-z0-9@.-]+ [A-Za-z0-9+/]+=*")
_NO_EFFECT = "Has no effect; accepted so that configs of Kafka Connect can be used. "


def scheme_of(path: str) -> str:
    """Return the scheme of a path, ``file`` if it has none."""
    found = _SCHEME.match(path)
    return {"s3a": "s3", "gcs": "gs", "abfss": "abfs"}.get(found[1], found[1]) if found else "file"


def _path(name: str, value: ConfigValue) -> None:
    scheme = scheme_of(str(value))
    if scheme not in SCHEMES:
        raise ConfigError(name, value, f"has to be an absolute path or a URL of {', '.join(SCHEMES)}")
    if scheme == "file" and not str(value).removeprefix("file://").startswith("/"):
        raise ConfigError(name, value, "has to be absolute, because tasks run in other folders")


def _service_account(name: str, value: ConfigValue) -> None:
    if not isinstance(value, Password):
        return
    try:
        found = isinstance(json.loads(value.value), dict)
    except ValueError:
        found = False
    if not found:
        raise ConfigError(name, value, "has to be the JSON object of a service account's key file")


def _host_key(name: str, value: ConfigValue) -> None:
    if value and not _PUBLIC_KEY.fullmatch(str(value)):
        raise ConfigError(name, value, "has to be the kind and the key, such as ssh-ed25519 AAAA..., without the server's name")


def only(name: str, kind: Type, default: ConfigValue, reason: str) -> ConfigKey:
    """Return a key of Confluent's that must keep its default."""

    def check(key: str, value: ConfigValue) -> None:
        if value != default:
            raise ConfigError(key, value, f"is not supported: {reason}")

    return ConfigKey(
        name=name,
        type=kind,
        default=default,
        validator=Check(check, f"only {default!r}"),
        importance=Importance.LOW,
        group=_REFUSED,
        doc=f"Must not be changed: {reason}.",
    )


def ignored(name: str, kind: Type, default: ConfigValue, reason: str) -> ConfigKey:
    """Return a key of Confluent's that has no effect."""
    return ConfigKey(name=name, type=kind, default=default, importance=Importance.LOW, group=_STORAGE, doc=_NO_EFFECT + reason)


HDFS_LOGIN = (
    text(
        name=keys.HADOOP_CONF_DIR,
        default="",
        importance=Importance.HIGH,
        group=_STORAGE,
        doc="Folder with core-site.xml and hdfs-site.xml, on the machines of the tasks; by default that of HADOOP_CONF_DIR. "
        "Needed for high availability.",
    ),
    flag(
        name=keys.HDFS_KERBEROS,
        default=False,
        importance=Importance.HIGH,
        group=_SECURITY,
        doc="Whether to log in to HDFS with Kerberos.",
    ),
    text(
        name=keys.HDFS_PRINCIPAL,
        default="",
        importance=Importance.HIGH,
        group=_SECURITY,
        doc="Kerberos principal of the task.",
    ),
    text(
        name=keys.HDFS_KEYTAB,
        default="",
        importance=Importance.HIGH,
        group=_SECURITY,
        doc="Path of the principal's keytab on the machines of the tasks; if empty, the ticket cache is used.",
    ),
    text(
        name=keys.HDFS_NAMENODE_PRINCIPAL,
        default="",
        importance=Importance.HIGH,
        group=_SECURITY,
        doc="Kerberos principal of the NameNode, if hadoop.conf.dir does not say it.",
    ),
)
S3_LOGIN = (
    text(
        name=keys.S3_REGION,
        default="us-west-2",
        importance=Importance.MEDIUM,
        group=_STORAGE,
        doc="Region of the bucket.",
    ),
    ConfigKey(
        name=keys.AWS_KEY,
        type=Type.STRING,
        default="",
        importance=Importance.MEDIUM,
        group=_SECURITY,
        doc="Access key; if empty, the environment, the shared files or the machine's role decide.",
    ),
    secret(
        name=keys.AWS_SECRET,
        importance=Importance.MEDIUM,
        group=_SECURITY,
        doc="Secret of the access key.",
    ),
    text(
        name=keys.STORE_URL,
        default=None,
        importance=Importance.LOW,
        group=_STORAGE,
        doc="URL of another server with the protocol of S3, such as MinIO.",
    ),
    flag(
        name=keys.S3_PATH_STYLE,
        default=True,
        importance=Importance.LOW,
        group=_STORAGE,
        doc="Whether the bucket is part of the path, not of the host's name.",
    ),
)
_S3_WRITING = (
    whole(
        name=keys.S3_PART_SIZE,
        default=26_214_400,
        validator=Range(5 * 1024 * 1024),
        importance=Importance.HIGH,
        group=_STORAGE,
        doc="Bytes of an upload's parts. Each open file keeps one part in memory.",
    ),
    text(
        name=keys.S3_SSE,
        default="",
        validator=OneOf(["", "AES256", "aws:kms"]),
        importance=Importance.LOW,
        group=_SECURITY,
        doc="Encryption in the bucket: AES256, aws:kms, or the bucket's default if empty.",
    ),
    text(name=keys.S3_KMS_KEY, default="", importance=Importance.LOW, group=_SECURITY, doc="Key for aws:kms."),
    text(
        name=keys.S3_ACL,
        default=None,
        importance=Importance.LOW,
        group=_SECURITY,
        doc="Canned access control list of the objects, such as bucket-owner-full-control.",
    ),
)
GCS_LOGIN = (
    text(
        name=keys.GCS_CREDENTIALS,
        default="",
        importance=Importance.HIGH,
        group=_SECURITY,
        doc="Path of a service account's JSON file on the machines of the tasks; if empty, the machine's account.",
    ),
    secret(
        name=keys.GCS_CREDENTIALS_JSON,
        validator=Check(_service_account, "a service account's JSON"),
        importance=Importance.HIGH,
        group=_SECURITY,
        doc="A service account's JSON itself, instead of its path.",
    ),
)
AZURE_LOGIN = (
    text(name=keys.AZURE_ACCOUNT, default="", importance=Importance.HIGH, group=_SECURITY, doc="Name of the storage account."),
    secret(
        name=keys.AZURE_KEY,
        importance=Importance.HIGH,
        group=_SECURITY,
        doc="Key of the storage account; if empty, the machine's identity.",
    ),
    secret(
        name=keys.AZURE_SAS_TOKEN,
        importance=Importance.HIGH,
        group=_SECURITY,
        doc="Shared access signature, instead of the key of the storage account.",
    ),
)

SFTP_LOGIN = (
    text(
        name=keys.SFTP_USERNAME,
        default="",
        importance=Importance.MEDIUM,
        group=_SECURITY,
        doc="The user of sftp://host/folder; by default the one in sftp://user@host/folder.",
    ),
    secret(
        name=keys.SFTP_PASSWORD,
        importance=Importance.MEDIUM,
        group=_SECURITY,
        doc="The user's password, or that of the private key.",
    ),
    text(
        name=keys.SFTP_KEY_FILE,
        default="",
        importance=Importance.MEDIUM,
        group=_SECURITY,
        doc="Path of a private key on the machines of the tasks; by default, and without a password, the keys of ~/.ssh and of "
        "the agent.",
    ),
    text(
        name=keys.SFTP_HOST_KEY,
        default="",
        validator=Check(_host_key, "a public key, such as ssh-ed25519 AAAA..."),
        importance=Importance.MEDIUM,
        group=_SECURITY,
        doc="The server's public key, as ssh-keyscan prints it after the server's name; by default ~/.ssh/known_hosts on the "
        "machines of the tasks has it.",
    ),
)

PATH = ConfigDef(
    [
        text(
            name=keys.PATH,
            validator=EachOf([NonEmptyString(), Check(_path, "an absolute path or a URL")]),
            importance=Importance.HIGH,
            group=_STORAGE,
            doc="Where to write: /folder, hdfs://host:port/folder, hdfs://nameservice/folder, sftp://user@host/folder, "
            "s3://bucket/folder, gs://bucket/folder or abfs://container@account.dfs.core.windows.net/folder. A local folder has "
            "to be shared by the machines of the tasks, unless there is one.",
        ),
        *HDFS_LOGIN,
        *S3_LOGIN,
        *_S3_WRITING,
        *GCS_LOGIN,
        *AZURE_LOGIN,
        *SFTP_LOGIN,
    ]
)

_ONLY_VALUES = "only values are written"
_PROXY = "set HTTPS_PROXY in the executors' environment"
_RETRIES = "The client retries by itself, and then the task."
_SHARED = (
    only("store.kafka.keys", Type.BOOLEAN, False, _ONLY_VALUES),
    only("store.kafka.headers", Type.BOOLEAN, False, _ONLY_VALUES),
    ignored("shutdown.timeout.ms", Type.LONG, 3000, "Stopping waits for the commit of the open files."),
    ignored("keys.format.class", Type.STRING, None, "Keys are not written."),
    ignored("headers.format.class", Type.STRING, None, "Headers are not written."),
    ignored("tombstone.encoded.partition", Type.STRING, "tombstone", "Records without a value are not written."),
)


def _format_class(*formats: str) -> ConfigKey:
    return text(
        name=keys.FORMAT_CLASS,
        validator=one_of_classes(formats, ["io.confluent.connect"]),
        importance=Importance.HIGH,
        group=_STORAGE,
        doc=f"Format of the files: a class of Confluent's sink, or its simple name: {', '.join(formats)}.",
    )


def _proxy_login(prefix: str) -> tuple[ConfigKey, ConfigKey]:
    """Return the keys of a login to the proxy in a key that must keep its default."""
    reason = "HTTPS_PROXY holds the login, too."
    return (
        ignored(f"{prefix}.proxy.user", Type.STRING, None, reason),
        ignored(f"{prefix}.proxy.password", Type.PASSWORD, None, reason),
    )


HDFS = ConfigDef(
    [
        text(
            name=keys.HDFS_URL,
            default=None,
            importance=Importance.HIGH,
            group=_STORAGE,
            doc="URL of the NameNode or of the name service: hdfs://host:port. Deprecated, use store.url.",
        ),
        text(
            name=keys.STORE_URL,
            default=None,
            importance=Importance.HIGH,
            group=_STORAGE,
            doc="URL of the NameNode or of the name service: hdfs://host:port. A path in it comes before topics.dir.",
        ),
        common.changed(
            _format_class("ParquetFormat", "AvroFormat", "JsonFormat", "StringFormat", "OrcFormat"),
            default="io.confluent.connect.hdfs.avro.AvroFormat",
        ),
        *HDFS_LOGIN,
        ignored("hadoop.home", Type.STRING, "", "The client needs no Hadoop installation."),
        ignored("kerberos.ticket.renew.period.ms", Type.LONG, 3_600_000, "The client logs in again when a ticket has expired."),
        text(
            name="storage.class",
            default="io.confluent.connect.hdfs.storage.HdfsStorage",
            importance=Importance.LOW,
            group=_REFUSED,
            validator=one_of_classes(["HdfsStorage"], ["io.confluent.connect"]),
            doc="Always HDFS.",
        ),
        only("topic.capture.groups.regex", Type.STRING, None, "folders always have the topic's name"),
        only("max.open.files.per.partition", Type.INT, -1, "open files are limited by the task"),
        *_SHARED,
    ]
)

_DEFAULT_PROVIDER = "com.amazonaws.auth.DefaultAWSCredentialsProviderChain"
_S3_PROVIDERS = (_DEFAULT_PROVIDER, "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider")


def _bucket(name: str) -> ConfigKey:
    return text(name=name, validator=NonEmptyString(), importance=Importance.HIGH, group=_STORAGE, doc="Name of the bucket.")


def _object_keys(provider: str, compression: str) -> list[ConfigKey]:
    storage = f"io.confluent.connect.{provider}.storage"
    return [
        text(
            name=compression,
            default="none",
            validator=OneOf(common.LINES_CODECS),
            importance=Importance.LOW,
            group=_STORAGE,
            doc="Compression of JSON and bytes; gzip adds .gz to the names.",
        ),
        _format_class("ParquetFormat", "AvroFormat", "JsonFormat", "ByteArrayFormat"),
        text(
            name="storage.class",
            default="",
            importance=Importance.LOW,
            group=_REFUSED,
            validator=Check(lambda key, value: _storage_class(key, value, storage), f"a class of {storage}"),
            doc="Always the storage of this connector.",
        ),
        *_SHARED,
    ]


def _storage_class(name: str, value: ConfigValue, package: str) -> None:
    if value and not str(value).startswith(package):
        raise ConfigError(name, value, f"is not supported; leave it out or use a class of {package}")


S3 = ConfigDef(
    [
        _bucket(keys.S3_BUCKET),
        *S3_LOGIN,
        *_S3_WRITING,
        *_object_keys("s3", keys.S3_COMPRESSION),
        text(
            name="s3.credentials.provider.class",
            default=_DEFAULT_PROVIDER,
            validator=OneOf(_S3_PROVIDERS),
            importance=Importance.LOW,
            group=_SECURITY,
            doc="Only the default chain: keys in the config, the environment, the shared files, the machine's role.",
        ),
        only("s3.compression.level", Type.INT, -1, "gzip has its default level"),
        only("s3.sse.customer.key", Type.PASSWORD, None, "use s3.ssea.name=aws:kms"),
        only("s3.wan.mode", Type.BOOLEAN, False, "set store.url to the accelerated endpoint"),
        only("s3.proxy.url", Type.STRING, "", _PROXY),
        *_proxy_login("s3"),
        only("s3.object.tagging", Type.BOOLEAN, False, "objects get no tags"),
        ignored("s3.object.tagging.key.value.pairs", Type.LIST, [], "Objects get no tags."),
        ignored("s3.object.behavior.on.tagging.error", Type.STRING, "ignore", "Objects get no tags."),
        ignored("s3.send.digest", Type.BOOLEAN, False, "The client decides."),
        only("s3.schema.partition.affix.type", Type.STRING, "NONE", "schemas have files of their own, not folders"),
        ignored("s3.part.retries", Type.INT, 3, _RETRIES),
        ignored("s3.retry.backoff.ms", Type.LONG, 200, _RETRIES),
        ignored("s3.http.send.expect.continue", Type.BOOLEAN, True, "The client decides."),
        ignored("s3.elastic.buffer.enable", Type.BOOLEAN, False, "Buffers grow as needed."),
        ignored("s3.elastic.buffer.init.capacity", Type.INT, 131_072, "Buffers grow as needed."),
    ]
)
GCS = ConfigDef(
    [
        _bucket(keys.GCS_BUCKET),
        *GCS_LOGIN,
        long(
            name=keys.GCS_PART_SIZE,
            default=26_214_400,
            validator=Range(5 * 1024 * 1024),
            importance=Importance.HIGH,
            group=_STORAGE,
            doc="Bytes of an upload's parts. Each open file keeps one part in memory.",
        ),
        *_object_keys("gcs", keys.GCS_COMPRESSION),
        only("gcs.proxy.url", Type.STRING, "", _PROXY),
        *_proxy_login("gcs"),
        ignored("gcs.part.retries", Type.INT, 3, _RETRIES),
        ignored("gcs.retry.backoff.ms", Type.LONG, 200, _RETRIES),
        ignored("gcs.parts.prefix", Type.STRING, "parts", "Parts have no names."),
    ]
)
AZURE = ConfigDef(
    [
        text(
            name=keys.AZURE_CONTAINER, default="default", importance=Importance.HIGH, group=_STORAGE, doc="Name of the container."
        ),
        *AZURE_LOGIN,
        long(
            name=keys.AZURE_PART_SIZE,
            default=26_214_400,
            validator=Range(5 * 1024 * 1024),
            importance=Importance.HIGH,
            group=_STORAGE,
            doc="Bytes of an upload's parts. Each open file keeps one part in memory.",
        ),
        *_object_keys("azure.blob", keys.AZURE_COMPRESSION),
        long(
            name=keys.AZURE_BLOCK_SIZE,
            default=None,
            validator=OrNull(Range(5 * 1024 * 1024)),
            importance=Importance.HIGH,
            group=_STORAGE,
            doc=f"Another name of {keys.AZURE_PART_SIZE}.",
        ),
        only("azblob.proxy.url", Type.STRING, "", _PROXY),
        *_proxy_login("azblob"),
        only("azblob.retry.secondary.host", Type.STRING, None, "retries are sent to the account's own host"),
        ignored("azblob.retry.type", Type.STRING, "EXPONENTIAL", _RETRIES),
        ignored("azblob.retry.retries", Type.INT, 3, _RETRIES),
        ignored("azblob.retry.backoff.ms", Type.LONG, 4000, _RETRIES),
        ignored("azblob.retry.max.backoff.ms", Type.LONG, 120_000, _RETRIES),
        ignored("azblob.connection.timeout.ms", Type.LONG, 30_000, "The client decides."),
    ]
)
