#!/usr/bin/env bash
# ZooKeeper, in the foreground. Start it before the brokers.
cd "$(dirname "$0")" || exit 1
exec zookeeper-server-start "$PWD/config/zookeeper.properties"
