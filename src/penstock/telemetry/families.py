"""The names under which metrics are told: those the usual JMX exporter set-up gives Kafka's beans.

Dashboards and alerts written for Apache Kafka name these families, so the names are as binding as
the wire protocol. Each line says what the family is and where its value is found.
"""

from typing import Final

# Counters of a topic: family, attribute of TopicMetrics, text.
TOPIC_COUNTERS: Final = tuple(
    (f"kafka_server_brokertopicmetrics_{name}", attribute, text)
    for name, attribute, text in (
        ("messagesin", "messages_in", "Records appended."),
        ("bytesin", "bytes_in", "Bytes produced."),
        ("bytesout", "bytes_out", "Bytes fetched by consumers."),
        ("bytesrejected", "bytes_rejected", "Bytes of batches refused."),
        ("totalproducerequests", "produce_requests", "Produce requests."),
        ("totalfetchrequests", "fetch_requests", "Fetch requests."),
        ("failedproducerequests", "failed_produce_requests", "Produce requests that failed."),
        ("failedfetchrequests", "failed_fetch_requests", "Fetch requests that failed."),
        ("producemessageconversions", "produce_conversions", "Batches converted up."),
        ("fetchmessageconversions", "fetch_conversions", "Batches converted down."),
        ("invalidmessagecrcrecords", "invalid_messages", "Batches with a wrong checksum."),
        ("replicationbytesin", "replication_bytes_in", "Bytes fetched from leaders."),
        ("replicationbytesout", "replication_bytes_out", "Bytes sent to followers."),
    )
) + tuple(
    (f"penstock_validation_{name}", f"validation_{name}", text)
    for name, text in (
        ("checked", "Records checked against schemas."),
        ("refused", "Records that fail, in batches refused."),
        ("dead_letters", "Records that became dead letters."),
        ("warned", "Records appended though they fail."),
        ("unchecked", "Records appended while no registry answered."),
        ("seconds", "Time that checking took."),
    )
)

REQUESTS: Final = "kafka_network_requestmetrics_requests"
ERRORS: Final = "kafka_network_requestmetrics_errors"
REQUEST_BYTES: Final = "kafka_network_requestmetrics_requestbytes"
RESPONSE_BYTES: Final = "kafka_network_requestmetrics_responsebytes"
TOTAL_TIME: Final = "kafka_network_requestmetrics_totaltimems"
LOCAL_TIME: Final = "kafka_network_requestmetrics_localtimems"

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)

# Connections of a listener: gauge or counter, family, attribute of ListenerMetrics, text.
LISTENER_FAMILIES: Final = tuple(
    (kind, f"kafka_server_socketservermetrics_{name}", attribute, text)
    for kind, name, attribute, text in (
        ("gauge", "connection_count", "active", "Open connections."),
        ("counter", "connection_creation", "opened", "Connections accepted."),
        ("counter", "connection_close", "closed", "Connections closed."),
        ("counter", "expired_connections_killed_count", "closed_idle", "Closed while idle."),
        ("counter", "connection_refused", "refused", "Connections over a limit."),
    )
)

# Gauges that the broker's parts answer when asked; a gauge not listed here has no text.
PARTITION_COUNT: Final = "kafka_server_replicamanager_partitioncount"
LEADER_COUNT: Final = "kafka_server_replicamanager_leadercount"
UNDER_REPLICATED: Final = "kafka_server_replicamanager_underreplicatedpartitions"
UNDER_MIN_ISR: Final = "kafka_server_replicamanager_underminisrpartitioncount"
AT_MIN_ISR: Final = "kafka_server_replicamanager_atminisrpartitioncount"
ISR_SHRINKS: Final = "kafka_server_replicamanager_isrshrinks_total"
ISR_EXPANDS: Final = "kafka_server_replicamanager_isrexpands_total"
FAILED_ISR_UPDATES: Final = "kafka_server_replicamanager_failedisrupdates_total"
MAX_LAG: Final = "kafka_server_replicafetchermanager_maxlag"
OFFLINE_REPLICAS: Final = "kafka_server_replicamanager_offlinereplicacount"
ACTIVE_CONTROLLERS: Final = "kafka_controller_kafkacontroller_activecontrollercount"
GLOBAL_TOPICS: Final = "kafka_controller_kafkacontroller_globaltopiccount"
GLOBAL_PARTITIONS: Final = "kafka_controller_kafkacontroller_globalpartitioncount"
OFFLINE_PARTITIONS: Final = "kafka_controller_kafkacontroller_offlinepartitionscount"
LOG_SIZE: Final = "kafka_log_log_size"
LOG_START_OFFSET: Final = "kafka_log_log_logstartoffset"
LOG_END_OFFSET: Final = "kafka_log_log_logendoffset"
LOG_SEGMENTS: Final = "kafka_log_log_numlogsegments"
OFFLINE_LOG_DIRS: Final = "kafka_log_logmanager_offlinelogdirectorycount"
LOG_DIR_TOTAL_BYTES: Final = "penstock_log_dir_total_bytes"
LOG_DIR_USABLE_BYTES: Final = "penstock_log_dir_usable_bytes"
LOG_DIR_FULL: Final = "penstock_log_dir_full"
REFUSED_APPENDS: Final = "penstock_log_dir_refused_appends_total"
FETCH_SESSIONS: Final = "kafka_server_fetchsessioncache_numincrementalfetchsessions"
QUOTA_BYTE_RATE: Final = "kafka_server_quota_byte_rate"
QUOTA_REQUEST_TIME: Final = "kafka_server_quota_request_time"
QUOTA_TOKENS: Final = "kafka_server_quota_tokens"
QUOTA_THROTTLE_TIME: Final = "kafka_server_quota_throttle_time"
LOOP_TURN_MAX: Final = "penstock_event_loop_longest_turn_seconds"
LOOP_TURN_MAX_EVER: Final = "penstock_event_loop_longest_turn_ever_seconds"
MEMORY_PEAK: Final = "process_resident_memory_max_bytes"
BROKER_STATE: Final = "kafka_server_kafkaserver_brokerstate"

GAUGE_TEXTS: Final = {
    "penstock_validation_workers": "Processes that decode records.",
    "penstock_validation_worker_deaths": "Such processes that ended over a batch.",
    PARTITION_COUNT: "Partitions hosted here.",
    LEADER_COUNT: "Partitions led from here.",
    UNDER_REPLICATED: "Partitions led from here with replicas that lag.",
    UNDER_MIN_ISR: "Partitions led from here with fewer in-sync replicas than they need.",
    AT_MIN_ISR: "Partitions led from here with just as many in-sync replicas as they need.",
    ISR_SHRINKS: "Times that a replica left an in-sync set of a partition led from here.",
    ISR_EXPANDS: "Times that a replica joined an in-sync set of a partition led from here.",
    FAILED_ISR_UPDATES: "In-sync sets that were refused by the metadata store.",
    MAX_LAG: "Records that a leader has committed and this broker has not copied, at most.",
    OFFLINE_REPLICAS: "Replicas whose directory has failed.",
    ACTIVE_CONTROLLERS: "1 on the broker that is the controller.",
    GLOBAL_TOPICS: "Topics of the cluster.",
    GLOBAL_PARTITIONS: "Partitions of the cluster.",
    OFFLINE_PARTITIONS: "Partitions without a leader.",
    LOG_SIZE: "Bytes of a partition on disk.",
    LOG_START_OFFSET: "The first offset of a partition.",
    LOG_END_OFFSET: "The next offset of a partition.",
    LOG_SEGMENTS: "Segments of a partition.",
    OFFLINE_LOG_DIRS: "Data directories that have failed.",
    LOG_DIR_TOTAL_BYTES: "Bytes of the volume under a data directory.",
    LOG_DIR_USABLE_BYTES: "Bytes that records may still take there.",
    LOG_DIR_FULL: "1 while a data directory takes no records because its disk is full.",
    REFUSED_APPENDS: "Appends refused because the disk was full.",
    FETCH_SESSIONS: "Incremental fetch sessions kept.",
    QUOTA_BYTE_RATE: "Bytes a second of a client that has a quota.",
    QUOTA_REQUEST_TIME: "The part of a processor a client with a quota takes, in percent.",
    QUOTA_TOKENS: "Partitions a client may still create or delete; below zero: it has to wait.",
    QUOTA_THROTTLE_TIME: "Milliseconds a client was made to be silent for, on the average.",
    LOOP_TURN_MAX: "The longest that all clients had to wait for one turn, since the last scrape.",
    LOOP_TURN_MAX_EVER: "The longest that all clients had to wait for one turn, since the start.",
    MEMORY_PEAK: "The most memory this process has held.",
    BROKER_STATE: "3 when the broker runs.",
}
