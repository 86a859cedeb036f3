"""Live streams of a topic's records: SSE, NDJSON and WebSocket, resumed where they broke off."""
