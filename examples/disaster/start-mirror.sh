#!/bin/sh
# The mirror from A to B, in the foreground.
cd "$(dirname "$0")" || exit 1
PATH="$PWD/../../.venv/bin:$PATH"
exec penstock mirror config/mm2.properties --state logs
