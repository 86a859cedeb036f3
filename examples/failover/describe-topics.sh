#!/usr/bin/env bash
# Who leads which partition, and who is in sync. Any broker that lives can tell.
cd "$(dirname "$0")" || exit 1
PATH="$PWD/../../.venv/bin:$PATH" # The commands of this checkout, where it has been set up.
kafka-topics --describe \
    --bootstrap-server localhost:9093,localhost:9094,localhost:9092 \
    --topic my-failsafe-topic
