"""TLS: key stores in Kafka's three formats, and the contexts listeners and clients make of them."""
