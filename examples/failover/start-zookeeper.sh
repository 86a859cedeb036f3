#!/usr/bin/env bash
# ZooKeeper, in the foreground. Start it before the brokers.
cd "$(dirname "$0")" || exit 1
PATH="$PWD/../../.venv/bin:$PATH" # The commands of this checkout, where it has been set up.
exec zookeeper-server-start "$PWD/config/zookeeper.properties"
