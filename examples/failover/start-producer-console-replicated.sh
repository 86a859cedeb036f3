#!/usr/bin/env bash
# Every line typed is a record, kept by all replicas in sync before it counts as sent.
cd "$(dirname "$0")" || exit 1
PATH="$PWD/../../.venv/bin:$PATH" # The commands of this checkout, where it has been set up.
exec kafka-console-producer \
    --bootstrap-server localhost:9092,localhost:9093,localhost:9094 \
    --topic my-failsafe-topic \
    --command-property acks=all
