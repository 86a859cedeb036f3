"""Metrics: ours on an HTTP endpoint, and the reporters of Apache Kafka."""

from typing import Final

from penstock.config.settings import (
    ACTS,
    BOOLEAN,
    CLUSTER_WIDE,
    INERT,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    READ_ONLY,
    STRING,
    Bounds,
    Setting,
)

# One setting, two lines: a table is read down its columns.
# fmt: off
SETTINGS: Final = (
    # Endpoint.
    Setting("metrics.listeners", LIST, (), None, MEDIUM, READ_ONLY,
            ACTS, "Where metrics can be scraped, as http://host:port; empty: nowhere."),
    # Reporters.
    Setting("metric.reporters", LIST,
            ("org.apache.kafka.common.metrics.JmxReporter",), None, LOW, CLUSTER_WIDE,
            INERT, "Reporter classes of Apache Kafka."),
    Setting("auto.include.jmx.reporter", BOOLEAN, True, None, LOW, READ_ONLY,
            INERT, "Whether Apache Kafka always reports over JMX."),
    Setting("metrics.num.samples", INT, 2, Bounds(1), LOW, READ_ONLY,
            INERT, "Samples a reported rate is measured over."),
    Setting("metrics.sample.window.ms", LONG, 30_000, Bounds(1), LOW, READ_ONLY,
            INERT, "The length of one such sample."),
    Setting("metrics.recording.level", STRING, "INFO", None, LOW, READ_ONLY,
            INERT, "How much Apache Kafka records."),
    Setting("kafka.metrics.reporters", LIST, (), None, LOW, READ_ONLY,
            INERT, "Reporter classes of the older kind."),
    Setting("kafka.metrics.polling.interval.secs", INT, 10, Bounds(1), LOW, READ_ONLY,
            INERT, "How often those are asked to report."),
    Setting("telemetry.max.bytes", INT, 1 << 20, Bounds(1), LOW, READ_ONLY,
            INERT, "The largest report of a client's metrics taken."),
)
# fmt: on
