"""Sources from search indexes: OpenSearch and Elasticsearch, by points in time."""

from sluiceway.connectors.search.source.connector import ElasticsearchSourceConnector, OpenSearchSourceConnector

__all__ = ["ElasticsearchSourceConnector", "OpenSearchSourceConnector"]
