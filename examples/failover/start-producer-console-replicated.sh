#!/usr/bin/env bash
# Every line typed is a record, kept by all replicas in sync before it counts as sent.
exec kafka-console-producer \
    --bootstrap-server localhost:9092,localhost:9093,localhost:9094 \
    --topic my-failsafe-topic \
    --producer-property acks=all
