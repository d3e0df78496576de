"""Published Java plugins that tests run, by Maven coordinates, beside those in ``support.java_plugins``."""

from __future__ import annotations

from pathlib import Path

from support.java_plugins import plugin_folder

ICEBERG_VERSION = "1.9.2"
_ICEBERG = (
    *(f"org.apache.iceberg:iceberg-{part}:{ICEBERG_VERSION}" for part in ("kafka-connect", "parquet")),
    *(f"org.apache.hadoop:hadoop-client-{part}:3.4.1" for part in ("api", "runtime")),
)
_LOGGING_AND_KAFKA = ("org.apache.kafka:*", "org.slf4j:*", "ch.qos.reload4j:*", "org.apache.logging.log4j:*")
MIRROR = ("org.apache.kafka:connect-mirror:4.3.0",)
MONGO = ("org.mongodb.kafka:mongo-kafka-connect:2.0.1",)
APICURIO = ("io.apicurio:apicurio-registry-utils-converter:2.6.13.Final",)


def iceberg_folder(plugin_path: Path) -> Path:
    """Make a plugin location with Iceberg's sink, its Parquet writer, and Hadoop's client for the catalog."""
    return plugin_folder(plugin_path, "iceberg", _ICEBERG, _LOGGING_AND_KAFKA)
