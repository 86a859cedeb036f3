#!/usr/bin/env bash
# Broker 2, in the foreground.
cd "$(dirname "$0")" || exit 1
PATH="$PWD/../../.venv/bin:$PATH" # The commands of this checkout, where it has been set up.
exec kafka-server-start "$PWD/config/server-2.properties"
