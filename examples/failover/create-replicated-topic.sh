#!/usr/bin/env bash
# Thirteen partitions, each on all three brokers.
kafka-topics --create \
    --bootstrap-server localhost:9092,localhost:9093 \
    --replication-factor 3 \
    --partitions 13 \
    --topic my-failsafe-topic
