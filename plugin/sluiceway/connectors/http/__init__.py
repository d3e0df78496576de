"""HTTP: a source that polls a server, a receiver of webhooks, and a sink."""

from sluiceway.connectors.http.sink import HttpSinkConnector

__all__ = ["HttpSinkConnector"]
