#!/usr/bin/env bash
# The first replica of each partition leads again, now that broker 0 is back.
cd "$(dirname "$0")" || exit 1
PATH="$PWD/../../.venv/bin:$PATH" # The commands of this checkout, where it has been set up.
kafka-leader-election \
    --bootstrap-server localhost:9092,localhost:9093,localhost:9094 \
    --election-type preferred \
    --all-topic-partitions
