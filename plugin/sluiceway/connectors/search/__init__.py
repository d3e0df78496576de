"""Search indexes: sinks and sources of OpenSearch and Elasticsearch."""
