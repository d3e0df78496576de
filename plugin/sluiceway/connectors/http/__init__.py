"""HTTP: a source that polls a server, a receiver of webhooks, and a sink."""

from sluiceway.connectors.http.sink import HttpSinkConnector
from sluiceway.connectors.http.source import HttpSourceConnector
from sluiceway.connectors.http.webhook import WebhookSourceConnector

__all__ = ["HttpSinkConnector", "HttpSourceConnector", "WebhookSourceConnector"]
