"""HTTP/2 beside HTTP/1.1, for services whose clients keep many streams on one connection."""
