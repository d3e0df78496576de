"""Translates the catalog keys of Apache's Iceberg sink to PyIceberg's. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.errors import ConfigError

TYPE, IMPL = "type", "catalog-impl"

_TYPES = {"rest": "rest", "hive": "hive", "glue": "glue", "jdbc": "sql", "sql": "sql", "dynamodb": "dynamodb"}
_IMPLS = {
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.hive.HiveCatalog": "hive",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
    "org.apache.iceberg.jdbc.JdbcCatalog": "sql",
    "org.apache.iceberg.aws.dynamodb.DynamoDbCatalog": "dynamodb",
}
_REFUSED = {
    "hadoop": "a Hadoop catalog cannot keep two commits apart on every file system; use a rest, sql, hive or glue catalog",
    "nessie": "use Nessie's REST catalog instead, with type=rest",
}
_RENAMED = {
    "s3.path-style-access": "s3.force-virtual-addressing",
    "jdbc.user": "",
    "jdbc.password": "",
    "io-impl": "",  # PyIceberg chooses by the location's scheme; py-io-impl overrides it
}
_HDFS_IO = "sluiceway.connectors.iceberg.file_io.HdfsFileIO"
_SCHEMES = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "sqlite": "sqlite"}


def catalog_type(given: Mapping[str, str]) -> str:
    """Return PyIceberg's catalog type for the keys below ``iceberg.catalog.``. Raises ConfigError for those it lacks."""
    kind, impl = given.get(TYPE, "").lower(), given.get(IMPL, "")
    for name, reason in _REFUSED.items():
        if kind == name or name in impl.lower():
            raise ConfigError(f"iceberg.catalog.{TYPE if kind else IMPL}", kind or impl, reason)
    if impl:
        if impl not in _IMPLS:
            raise ConfigError(f"iceberg.catalog.{IMPL}", impl, f"must be one of {', '.join(_IMPLS)}")
        return _IMPLS[impl]
    if not kind:
        raise ConfigError(f"iceberg.catalog.{TYPE}", None, f"must be one of {', '.join(_TYPES)}")
    if kind not in _TYPES:
        raise ConfigError(f"iceberg.catalog.{TYPE}", kind, f"must be one of {', '.join(_TYPES)}")
    return _TYPES[kind]


def catalog_properties(given: Mapping[str, str]) -> dict[str, str]:
    """Return PyIceberg's properties for the keys below ``iceberg.catalog.``. Raises ConfigError."""
    kind = catalog_type(given)
    found = {"type": kind}
    for name, value in given.items():
        if name in (TYPE, IMPL):
            continue
        renamed = _RENAMED.get(name, name)
        if name == "s3.path-style-access":
            found[renamed] = "false" if value.lower() == "true" else "true"
        elif renamed:
            found[renamed] = _without_s3a(value) if name == "warehouse" else value
    if found.get("warehouse", "").startswith("hdfs:"):
        found.setdefault("py-io-impl", _HDFS_IO)
    if kind == "sql" and found.get("uri", "").startswith("jdbc:"):
        found["uri"] = _sql_url(found["uri"], given.get("jdbc.user"), given.get("jdbc.password"))
    return found


def _without_s3a(location: str) -> str:
    return "s3" + location[3:] if location.startswith("s3a:") else location


def _sql_url(url: str, user: str | None, password: str | None) -> str:
    """Return SQLAlchemy's URL for a JDBC URL."""
    from urllib.parse import quote

    scheme, _, rest = url.removeprefix("jdbc:").partition(":")
    if scheme not in _SCHEMES:
        raise ConfigError("iceberg.catalog.uri", f"jdbc:{scheme}:...", f"must be for one of {', '.join(_SCHEMES)}")
    if scheme == "sqlite":
        return f"sqlite:///{rest}"
    login = f"{quote(user, safe='')}{':' + quote(password, safe='') if password else ''}@" if user else ""
    return f"{_SCHEMES[scheme]}://{login}{rest.removeprefix('//')}"
