#!/bin/sh
# Cluster A: one broker, in the foreground.
cd "$(dirname "$0")" || exit 1
PATH="$PWD/../../.venv/bin:$PATH"
exec penstock server config/a.properties
