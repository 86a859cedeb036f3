#!/bin/sh
# The interpreter of Spark's Python processes; `worker_start.py` tells why there is one in between.
# It takes Spark's zipped copy of PySpark off the path: a module in a zip is compiled again by every
# process, the installed one is compiled already. The jar beside it has no Python in it, and its
# list of files takes a while to read. A process that the JVM waits for connects before it imports.
kept=
set -f
oldIFS=$IFS
IFS=:
for entry in $PYTHONPATH; do
    case $entry in
    */pyspark.zip | */py4j-*-src.zip | */spark-core_*.jar) ;;
    *) kept=$kept:$entry ;;
    esac
done
IFS=$oldIFS
export PYTHONPATH="${kept#:}"
if [ "$1" = -m ] && [ -n "$PYTHON_WORKER_FACTORY_PORT$PYTHON_WORKER_FACTORY_SOCK_PATH" ]; then
    shift
    exec "$PENSTOCK_WORKER_PYTHON" -m penstock.spark.start.early_connection "$@"
fi
exec "$PENSTOCK_WORKER_PYTHON" "$@"
