#!/bin/sh
# The shop takes the next orders on cluster B: three, or as many as you say.
cd "$(dirname "$0")" || exit 1
PATH="$PWD/../../.venv/bin:$PATH"
exec kafka-console-consumer.sh --bootstrap-server "${B:-localhost:9192}" --topic A.orders \
    --group shop --from-beginning --max-messages "${1:-3}"
