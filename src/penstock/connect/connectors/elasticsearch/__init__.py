"""Topics into Elasticsearch and OpenSearch, by their bulk call over HTTP."""
