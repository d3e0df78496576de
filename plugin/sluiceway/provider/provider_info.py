"""The package's metadata for Airflow's provider manager.

Every Airflow process imports this module, so it imports no large packages.
"""

from __future__ import annotations

from typing import Any

from sluiceway.provider.hooks.connection_type import CONN_TYPE, FIELD_BEHAVIOUR, FORM_FIELDS, HOOK_NAME
from sluiceway.provider.settings import OPTIONS, SECTION

_INTEGRATION = "Sluiceway"


def get_provider_info() -> dict[str, Any]:
    """Return the provider's metadata, as Airflow's provider_info schema defines it."""
    from sluiceway import __version__

    options = {
        option.name: {
            "description": option.description,
            "version_added": None,
            "type": option.type,
            "example": None,
            "default": option.default,
        }
        for option in OPTIONS
    }
    return {
        "package-name": "sluiceway",
        "name": "Sluiceway",
        "description": "Kafka Connect for Apache Airflow and Apache Spark: connectors as DAGs, tasks on Spark, offsets in Kafka.",
        "versions": [__version__],
        "integrations": [
            {
                "integration-name": _INTEGRATION,
                "external-doc-url": "https://kafka.apache.org/documentation/#connect",
                "tags": ["service"],
            }
        ],
        "operators": _modules("sluiceway.operators.connector", "sluiceway.operators.control", "sluiceway.operators.application"),
        "sensors": _modules("sluiceway.sensors.state", "sluiceway.sensors.progress"),
        "triggers": _modules("sluiceway.provider.triggers"),
        "hooks": _modules("sluiceway.provider.hooks.kafka_connect", "sluiceway.provider.hooks.spark_submit"),
        "bundles": _modules("sluiceway.provider.bundle"),
        "connection-types": [
            {
                "connection-type": CONN_TYPE,
                "hook-class-name": "sluiceway.provider.hooks.kafka_connect.KafkaConnectHook",
                "hook-name": HOOK_NAME,
                "conn-fields": FORM_FIELDS,
                "ui-field-behaviour": FIELD_BEHAVIOUR,
            }
        ],
        "extra-links": [
            "sluiceway.provider.links.ConnectorPageLink",
            "sluiceway.provider.links.ConnectorRestLink",
            "sluiceway.provider.links.SparkUiLink",
        ],
        "cli": ["sluiceway.cli.airflow_commands.get_cli_commands"],
        "plugins": [{"name": "sluiceway", "plugin-class": "sluiceway.provider.plugin.SluicewayPlugin"}],
        "config": {
            SECTION: {
                "description": "The worker's properties file, intervals and timeouts.",
                "options": options,
            }
        },
    }


def _modules(*names: str) -> list[dict[str, Any]]:
    return [{"integration-name": _INTEGRATION, "python-modules": list(names)}]
