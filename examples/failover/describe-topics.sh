#!/usr/bin/env bash
# Who leads which partition, and who is in sync. Any broker that lives can tell.
kafka-topics --describe \
    --bootstrap-server localhost:9093,localhost:9094,localhost:9092 \
    --topic my-failsafe-topic
