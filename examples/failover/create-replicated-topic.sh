#!/usr/bin/env bash
# Thirteen partitions, each on all three brokers.
cd "$(dirname "$0")" || exit 1
PATH="$PWD/../../.venv/bin:$PATH" # The commands of this checkout, where it has been set up.
kafka-topics --create \
    --bootstrap-server localhost:9092,localhost:9093 \
    --replication-factor 3 \
    --partitions 13 \
    --topic my-failsafe-topic
