#!/usr/bin/env bash
# The first replica of each partition leads again, now that broker 0 is back.
kafka-leader-election \
    --bootstrap-server localhost:9092,localhost:9093,localhost:9094 \
    --election-type preferred \
    --all-topic-partitions
