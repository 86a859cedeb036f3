#!/usr/bin/env bash
# One of the consumers that share the partitions. Start it three times.
cd "$(dirname "$0")" || exit 1
PATH="$PWD/../../.venv/bin:$PATH" # The commands of this checkout, where it has been set up.
exec kafka-console-consumer \
    --bootstrap-server localhost:9092,localhost:9093,localhost:9094 \
    --topic my-failsafe-topic \
    --command-property group.id=mygroup \
    --from-beginning
