#!/bin/sh
# Cluster B: one broker, in the foreground.
cd "$(dirname "$0")" || exit 1
PATH="$PWD/../../.venv/bin:$PATH"
exec penstock server config/b.properties
