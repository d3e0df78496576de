"""Sinks to search indexes: OpenSearch and Elasticsearch, by their bulk API."""

from sluiceway.connectors.search.sink.connector import ElasticsearchSinkConnector, OpenSearchSinkConnector

__all__ = ["ElasticsearchSinkConnector", "OpenSearchSinkConnector"]
