#!/usr/bin/env bash
# Broker 0 dies without a word: no flush, no goodbye. It is found by its file.
cd "$(dirname "$0")" || exit 1
kill -9 $(pgrep -f "kafka-server-start $PWD/config/server-0.properties")
