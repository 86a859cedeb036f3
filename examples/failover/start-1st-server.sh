#!/usr/bin/env bash
# Broker 0, in the foreground.
cd "$(dirname "$0")" || exit 1
exec kafka-server-start "$PWD/config/server-0.properties"
