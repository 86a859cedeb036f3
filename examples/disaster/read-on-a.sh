#!/bin/sh
# The shop takes the next orders on cluster A: three, or as many as you say.
cd "$(dirname "$0")" || exit 1
PATH="$PWD/../../.venv/bin:$PATH"
exec kafka-console-consumer.sh --bootstrap-server "${A:-localhost:9092}" --topic orders \
    --group shop --from-beginning --max-messages "${1:-3}"
