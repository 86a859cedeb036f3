#!/bin/sh
# Ten orders, numbered, to cluster A.
cd "$(dirname "$0")" || exit 1
PATH="$PWD/../../.venv/bin:$PATH"
SERVER="${A:-localhost:9092}"
kafka-topics.sh --bootstrap-server "$SERVER" --create --if-not-exists --topic orders --partitions 1
seq 1 10 | kafka-console-producer.sh --bootstrap-server "$SERVER" --topic orders
