#!/usr/bin/env bash
# One of the consumers that share the partitions. Start it three times.
exec kafka-console-consumer \
    --bootstrap-server localhost:9092,localhost:9093,localhost:9094 \
    --topic my-failsafe-topic \
    --consumer-property group.id=mygroup \
    --from-beginning
