"""Storages as configs describe them: which file system, which root folder, which credentials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from sluiceway.config.definition import ConfigValue
from sluiceway.config.password import Password
from sluiceway.connectors.files import keys
from sluiceway.connectors.files.filesystem import FileSystem, RemoteFileSystem
from sluiceway.connectors.files.filesystem.hdfs import HdfsFileSystem, HdfsLogin
from sluiceway.connectors.files.filesystem.local import LocalFileSystem
from sluiceway.connectors.files.filesystem.objects import ObjectStore
from sluiceway.connectors.files.filesystem.sftp import SftpFileSystem, SftpLogin
from sluiceway.connectors.files.store_config import scheme_of

Values = Mapping[str, ConfigValue]

_PART_SIZE = 26_214_400
_SFTP_PORT = 22
_HADOOP_SCHEMES = {"s3": "s3a", "gs": "gs"}
_NAMENODE_PRINCIPAL = "dfs.namenode.kerberos.principal"


@dataclass(frozen=True, slots=True)
class Store:
    """A storage. The repr shows no secret.

    Attributes:
        url: the storage for messages.
        scheme: ``file``, ``hdfs``, ``viewfs``, ``sftp``, ``s3``, ``gs`` or ``abfs``.
        root: the folder that everything is written below, without a slash at its end.
        path_key: the config key that a wrong path is reported for.
        login_keys: the config keys that a refused login is reported for.
        login: how to reach HDFS or a server with SFTP.
        options: the options of fsspec's file system.
        part_size: bytes of an upload's parts.
    """

    url: str
    scheme: str
    root: str
    path_key: str
    login_keys: tuple[str, ...] = ()
    login: HdfsLogin | SftpLogin | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    part_size: int = _PART_SIZE

    def connect(self) -> FileSystem:
        """Return the file system. Raises StorageError, and MissingToolError if a package is missing."""
        return LocalFileSystem() if self.scheme == "file" else self.remote()

    def remote(self) -> RemoteFileSystem:
        """Return the file system of a storage that is not local. Raises as ``connect``."""
        if isinstance(self.login, SftpLogin):
            return SftpFileSystem(self.login)
        if self.login is not None:
            return HdfsFileSystem(self.login)
        return ObjectStore(self.scheme, self.options, self.part_size)

    def location(self, path: str) -> str:
        """Return the URL of a path by which Hadoop, Hive and Spark reach it."""
        if isinstance(self.login, SftpLogin):
            return f"sftp://{self.login.user}@{self.login.host}:{self.login.port}{path}"
        if self.login is not None:
            parts = urlsplit(self.login.url)
            return f"{self.scheme}://{parts.netloc}{path}"
        if self.scheme == "file":
            return f"file://{path}"
        if self.scheme == "abfs":
            container, _, rest = path.partition("/")
            return f"abfss://{container}@{self.options['account_name']}.dfs.core.windows.net/{rest}"
        return f"{_HADOOP_SCHEMES[self.scheme]}://{path}"

    def path(self, relative: str) -> str:
        """Return a path below the root."""
        return f"{self.root}/{relative.strip('/')}" if relative.strip("/") else self.root


def path_store(values: Values) -> Store:
    """Return the storage of ``path``."""
    return store_of(str(values[keys.PATH]), values, keys.PATH)


def store_of(path: str, values: Values, key: str) -> Store:
    """Return the storage of a path, which is the value of a key."""
    scheme = scheme_of(path)
    if scheme == "file":
        return Store(path, scheme, path.removeprefix("file://").rstrip("/"), key)
    if scheme in ("hdfs", "viewfs"):
        return _hdfs(path, values, key)
    if scheme == "sftp":
        return _sftp(path, values, key)
    location = path.partition("://")[2].rstrip("/")
    if scheme == "s3":
        return _s3(location, values, key)
    if scheme == "gs":
        return _gcs(location, values, key, _PART_SIZE)
    return _azure(path, values, key, _PART_SIZE)


def hdfs_store(values: Values) -> Store:
    """Return the storage of Confluent's HDFS sinks."""
    key = keys.STORE_URL if values[keys.STORE_URL] else keys.HDFS_URL
    return _hdfs(str(values[key]), values, key)


def s3_store(values: Values) -> Store:
    """Return the storage of Confluent's S3 sink."""
    return _s3(str(values[keys.S3_BUCKET]), values, keys.S3_BUCKET)


def gcs_store(values: Values) -> Store:
    """Return the storage of Confluent's GCS sink."""
    return _gcs(str(values[keys.GCS_BUCKET]), values, keys.GCS_BUCKET, _whole(values[keys.GCS_PART_SIZE]))


def azure_store(values: Values) -> Store:
    """Return the storage of Confluent's Azure Blob Storage sink."""
    part_size = _whole(values[keys.AZURE_BLOCK_SIZE] or values[keys.AZURE_PART_SIZE])
    return _azure(f"abfs://{values[keys.AZURE_CONTAINER]}", values, keys.AZURE_CONTAINER, part_size)


def _hdfs(url: str, values: Values, key: str) -> Store:
    parts = urlsplit(url)
    base = f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
    kerberos = bool(values[keys.HDFS_KERBEROS])
    name_node = str(values[keys.HDFS_NAMENODE_PRINCIPAL])
    login = HdfsLogin(
        base or url,
        str(values[keys.HADOOP_CONF_DIR]),
        str(values[keys.HDFS_PRINCIPAL]) if kerberos else "",
        str(values[keys.HDFS_KEYTAB]) if kerberos else "",
        {
            **({"hadoop.security.authentication": "kerberos"} if kerberos else {}),
            **({_NAMENODE_PRINCIPAL: name_node} if kerberos and name_node else {}),
        },
    )
    login_keys = (keys.HDFS_PRINCIPAL, keys.HDFS_KEYTAB) if kerberos else ()
    return Store(url, parts.scheme, parts.path.rstrip("/"), key, login_keys, login)


def _sftp(url: str, values: Values, key: str) -> Store:
    parts = urlsplit(url)
    user = str(values[keys.SFTP_USERNAME]) or parts.username or ""
    login = SftpLogin(
        parts.hostname or "",
        parts.port or _SFTP_PORT,
        user,
        _secret(values[keys.SFTP_PASSWORD]),
        str(values[keys.SFTP_KEY_FILE]),
        str(values[keys.SFTP_HOST_KEY]),
    )
    login_keys = (keys.SFTP_KEY_FILE if login.key_file else keys.SFTP_PASSWORD,)
    return Store(url, "sftp", parts.path.rstrip("/"), key, login_keys, login)


def _s3(location: str, values: Values, key: str) -> Store:
    extra = {
        "ServerSideEncryption": values.get(keys.S3_SSE),
        "SSEKMSKeyId": values.get(keys.S3_KMS_KEY),
        "ACL": values.get(keys.S3_ACL),
    }
    style = "path" if values[keys.S3_PATH_STYLE] else "virtual"
    options = {
        "key": values[keys.AWS_KEY] or None,
        "secret": _secret(values[keys.AWS_SECRET]),
        "endpoint_url": values[keys.STORE_URL] or None,
        "client_kwargs": {"region_name": values[keys.S3_REGION]},
        "config_kwargs": {"s3": {"addressing_style": style}},
        "s3_additional_kwargs": {name: value for name, value in extra.items() if value},
    }
    login_keys = (keys.AWS_KEY, keys.AWS_SECRET)
    return Store(
        f"s3://{location}", "s3", location, key, login_keys, None, options, _whole(values.get(keys.S3_PART_SIZE, _PART_SIZE))
    )


def _gcs(location: str, values: Values, key: str, part_size: int) -> Store:
    account = _secret(values[keys.GCS_CREDENTIALS_JSON])
    options = {"token": json.loads(account) if account else values[keys.GCS_CREDENTIALS] or None}
    login_keys = (keys.GCS_CREDENTIALS_JSON if account else keys.GCS_CREDENTIALS,)
    return Store(f"gs://{location}", "gs", location, key, login_keys, None, options, part_size)


def _azure(url: str, values: Values, key: str, part_size: int) -> Store:
    parts = urlsplit(url)
    account = str(values[keys.AZURE_ACCOUNT]) or (parts.hostname or "").partition(".")[0]
    container = parts.username or parts.netloc
    key_or_token = {"account_key": _secret(values[keys.AZURE_KEY]), "sas_token": _secret(values[keys.AZURE_SAS_TOKEN])}
    options = {"account_name": account, **key_or_token, "anon": False}
    root = f"{container}{parts.path.rstrip('/')}"
    return Store(f"abfs://{root}", "abfs", root, key, (keys.AZURE_ACCOUNT, keys.AZURE_KEY), None, options, part_size)


def _secret(value: ConfigValue) -> str | None:
    return value.value if isinstance(value, Password) else None


def _whole(value: ConfigValue) -> int:
    assert isinstance(value, int)  # noqa: S101 (parsed as such)
    return value
