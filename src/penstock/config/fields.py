"""The attributes of BrokerConfig, one for each setting, for readers and for the type checker.

A line states the type an attribute has after the rules of broker.py have been applied; a test
holds this list against the tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from penstock.config.listeners import ListenerAddress
    from penstock.config.settings import Password


class BrokerFields:
    """What a broker's configuration answers; the values are BrokerConfig's."""

    # tables/server.py
    broker_id: int  # Or node.id; -1: to be made up.
    broker_id_generation_enable: bool
    reserved_broker_max_id: int
    node_id: int  # The same as broker_id.
    broker_rack: str | None
    listeners: tuple[ListenerAddress, ...]
    advertised_listeners: tuple[ListenerAddress, ...]  # Or the listeners, with a host name put in.
    listener_security_protocol_map: Mapping[str, str]
    inter_broker_listener_name: str  # Or the one of security.inter.broker.protocol.
    security_inter_broker_protocol: str
    control_plane_listener_name: str | None
    port: int
    host_name: str
    advertised_port: int | None
    advertised_host_name: str | None
    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    socket_request_max_bytes: int
    socket_listen_backlog_size: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    connections_max_idle_ms: int
    connection_failed_authentication_delay_ms: int
    penstock_handshake_timeout_ms: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: Mapping[str, int]  # By address.
    max_connection_creation_rate: int
    num_network_threads: int
    num_io_threads: int
    background_threads: int
    queued_max_requests: int
    queued_max_request_bytes: int
    request_timeout_ms: int
    fetch_max_bytes: int
    max_incremental_fetch_session_cache_slots: int
    max_request_partition_size_limit: int
    fetch_purgatory_purge_interval_requests: int
    producer_purgatory_purge_interval_requests: int
    delete_records_purgatory_purge_interval_requests: int
    unstable_api_versions_enable: bool
    unstable_feature_versions_enable: bool
    auto_create_topics_enable: bool
    delete_topic_enable: bool
    num_partitions: int
    default_replication_factor: int
    create_topic_policy_class_name: str | None
    alter_config_policy_class_name: str | None
    config_providers: tuple[str, ...]
    controlled_shutdown_enable: bool
    controlled_shutdown_max_retries: int
    controlled_shutdown_retry_backoff_ms: int
    # tables/log.py
    log_dir: tuple[str, ...]
    log_dirs: tuple[Path, ...]  # log.dir where log.dirs is not set.
    cordoned_log_dirs: tuple[str, ...]
    log_dir_reserve_bytes: int
    log_dir_failure_timeout_ms: int
    num_recovery_threads_per_data_dir: int
    log_initial_task_delay_ms: int
    log_segment_bytes: int
    internal_segment_bytes: int | None
    log_roll_hours: int
    log_roll_ms: int  # Or log.roll.hours.
    log_roll_jitter_hours: int
    log_roll_jitter_ms: int  # Or log.roll.jitter.hours.
    log_segment_delete_delay_ms: int
    log_index_size_max_bytes: int
    log_index_interval_bytes: int
    log_preallocate: bool
    log_retention_hours: int
    log_retention_minutes: int | None
    log_retention_ms: int  # Of ms, minutes and hours the finest that is set; -1: for ever.
    log_retention_bytes: int
    log_retention_check_interval_ms: int
    log_cleanup_policy: tuple[str, ...]
    log_local_retention_bytes: int
    log_local_retention_ms: int
    log_flush_interval_messages: int
    log_flush_interval_ms: int  # Or the scheduler's interval.
    log_flush_scheduler_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    flush_on_ack: bool
    message_max_bytes: int
    compression_type: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    log_message_timestamp_type: str
    log_message_timestamp_before_max_ms: int
    log_message_timestamp_after_max_ms: int
    log_message_timestamp_difference_max_ms: int
    log_message_downconversion_enable: bool
    log_message_format_version: str
    log_cleaner_enable: bool
    log_cleaner_threads: int
    log_cleaner_backoff_ms: int
    log_cleaner_dedupe_buffer_size: int
    log_cleaner_io_buffer_size: int
    log_cleaner_io_buffer_load_factor: float
    log_cleaner_io_max_bytes_per_second: float
    log_cleaner_min_cleanable_ratio: float
    log_cleaner_min_compaction_lag_ms: int
    log_cleaner_max_compaction_lag_ms: int
    log_cleaner_delete_retention_ms: int
    # tables/replication.py
    min_insync_replicas: int
    unclean_leader_election_enable: bool
    unclean_leader_election_interval_ms: int
    replica_lag_time_max_ms: int
    replica_high_watermark_checkpoint_interval_ms: int
    replica_selector_class: str | None
    num_replica_fetchers: int
    replica_fetch_min_bytes: int
    replica_fetch_wait_max_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_backoff_ms: int
    replica_socket_timeout_ms: int
    replica_socket_receive_buffer_bytes: int
    num_replica_alter_log_dirs_threads: int  # Or one per data directory.
    leader_replication_throttled_rate: int
    follower_replication_throttled_rate: int
    replica_alter_log_dirs_io_max_bytes_per_second: int
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    leader_imbalance_per_broker_percentage: int
    controller_socket_timeout_ms: int
    inter_broker_protocol_version: str
    # tables/zookeeper.py
    zookeeper_connect: str | None
    penstock_shared_metadata: str | None
    broker_session_timeout_ms: int
    zookeeper_session_timeout_ms: int
    zookeeper_connection_timeout_ms: int  # Or the session's.
    zookeeper_max_in_flight_requests: int
    zookeeper_set_acl: bool
    zookeeper_sync_time_ms: int
    zookeeper_ssl_client_enable: bool
    zookeeper_client_cnxn_socket: str | None
    zookeeper_ssl_keystore_location: str | None
    zookeeper_ssl_keystore_password: Password | None
    zookeeper_ssl_keystore_type: str | None
    zookeeper_ssl_truststore_location: str | None
    zookeeper_ssl_truststore_password: Password | None
    zookeeper_ssl_truststore_type: str | None
    zookeeper_ssl_protocol: str
    zookeeper_ssl_enabled_protocols: tuple[str, ...] | None
    zookeeper_ssl_cipher_suites: tuple[str, ...] | None
    zookeeper_ssl_endpoint_identification_algorithm: str
    zookeeper_ssl_crl_enable: bool
    zookeeper_ssl_ocsp_enable: bool
    # tables/groups.py
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_commit_required_acks: int
    offsets_load_buffer_size: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    offsets_topic_compression_codec: int
    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_size: int
    group_coordinator_rebalance_protocols: tuple[str, ...]
    group_coordinator_threads: int
    group_coordinator_background_threads: int
    group_coordinator_append_linger_ms: int
    group_coordinator_cached_buffer_max_bytes: int
    group_consumer_assignors: tuple[str, ...]
    group_consumer_session_timeout_ms: int
    group_consumer_min_session_timeout_ms: int
    group_consumer_max_session_timeout_ms: int
    group_consumer_heartbeat_interval_ms: int
    group_consumer_min_heartbeat_interval_ms: int
    group_consumer_max_heartbeat_interval_ms: int
    group_consumer_assignment_interval_ms: int
    group_consumer_min_assignment_interval_ms: int
    group_consumer_max_assignment_interval_ms: int
    group_consumer_max_size: int
    group_consumer_migration_policy: str
    group_consumer_regex_refresh_interval_ms: int
    # tables/shares.py
    group_share_assignors: tuple[str, ...]
    group_share_session_timeout_ms: int
    group_share_min_session_timeout_ms: int
    group_share_max_session_timeout_ms: int
    group_share_heartbeat_interval_ms: int
    group_share_min_heartbeat_interval_ms: int
    group_share_max_heartbeat_interval_ms: int
    group_share_assignment_interval_ms: int
    group_share_min_assignment_interval_ms: int
    group_share_max_assignment_interval_ms: int
    group_share_max_size: int
    group_share_max_share_sessions: int
    group_share_delivery_count_limit: int
    group_share_min_delivery_count_limit: int
    group_share_max_delivery_count_limit: int
    group_share_partition_max_record_locks: int
    group_share_min_partition_max_record_locks: int
    group_share_max_partition_max_record_locks: int
    group_share_record_lock_duration_ms: int
    group_share_min_record_lock_duration_ms: int
    group_share_max_record_lock_duration_ms: int
    group_share_initialize_retry_interval_ms: int
    group_share_persister_class_name: str
    share_fetch_purgatory_purge_interval_requests: int
    share_coordinator_append_linger_ms: int
    share_coordinator_cached_buffer_max_bytes: int
    share_coordinator_cold_partition_snapshot_interval_ms: int
    share_coordinator_load_buffer_size: int
    share_coordinator_snapshot_update_records_per_snapshot: int
    share_coordinator_state_topic_compression_codec: int
    share_coordinator_state_topic_min_isr: int
    share_coordinator_state_topic_num_partitions: int
    share_coordinator_state_topic_prune_interval_ms: int
    share_coordinator_state_topic_replication_factor: int
    share_coordinator_state_topic_segment_bytes: int
    share_coordinator_threads: int
    share_coordinator_write_timeout_ms: int
    group_streams_session_timeout_ms: int
    group_streams_min_session_timeout_ms: int
    group_streams_max_session_timeout_ms: int
    group_streams_heartbeat_interval_ms: int
    group_streams_min_heartbeat_interval_ms: int
    group_streams_max_heartbeat_interval_ms: int
    group_streams_assignment_interval_ms: int
    group_streams_min_assignment_interval_ms: int
    group_streams_max_assignment_interval_ms: int
    group_streams_initial_rebalance_delay_ms: int
    group_streams_max_size: int
    group_streams_num_standby_replicas: int
    group_streams_max_standby_replicas: int
    # tables/transactions.py
    producer_id_expiration_ms: int
    producer_id_expiration_check_interval_ms: int
    transactional_id_expiration_ms: int
    transaction_max_timeout_ms: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_partition_verification_enable: bool
    transaction_two_phase_commit_enable: bool
    add_partitions_to_txn_retry_backoff_ms: int
    add_partitions_to_txn_retry_backoff_max_ms: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_min_isr: int
    transaction_state_log_segment_bytes: int
    transaction_state_log_load_buffer_size: int
    # tables/quotas.py
    quota_window_num: int
    quota_window_size_seconds: int
    controller_quota_window_num: int
    controller_quota_window_size_seconds: int
    replication_quota_window_num: int
    replication_quota_window_size_seconds: int
    alter_log_dirs_replication_quota_window_num: int
    alter_log_dirs_replication_quota_window_size_seconds: int
    client_quota_callback_class: str | None
    # tables/observation.py
    metrics_listeners: tuple[ListenerAddress, ...]
    metric_reporters: tuple[str, ...]
    auto_include_jmx_reporter: bool
    metrics_num_samples: int
    metrics_sample_window_ms: int
    metrics_recording_level: str
    kafka_metrics_reporters: tuple[str, ...]
    kafka_metrics_polling_interval_secs: int
    telemetry_max_bytes: int
    # tables/security.py
    authorizer_class_name: str
    penstock_audit_topic: str
    penstock_audit_allowed: bool
    principal_builder_class: str
    security_providers: str | None
    connections_max_reauth_ms: int
    delegation_token_secret_key: Password | None
    delegation_token_master_key: Password | None
    delegation_token_max_lifetime_ms: int
    delegation_token_expiry_time_ms: int
    delegation_token_expiry_check_interval_ms: int
    password_encoder_secret: Password | None
    password_encoder_old_secret: Password | None
    password_encoder_keyfactory_algorithm: str | None
    password_encoder_cipher_algorithm: str
    password_encoder_key_length: int
    password_encoder_iterations: int
    ssl_protocol: str
    ssl_enabled_protocols: tuple[str, ...]
    ssl_cipher_suites: tuple[str, ...]
    ssl_client_auth: str
    ssl_endpoint_identification_algorithm: str
    ssl_keystore_location: str | None
    ssl_keystore_password: Password | None
    ssl_keystore_type: str
    ssl_keystore_key: Password | None
    ssl_keystore_certificate_chain: Password | None
    ssl_key_password: Password | None
    ssl_truststore_location: str | None
    ssl_truststore_password: Password | None
    ssl_truststore_type: str
    ssl_truststore_certificates: Password | None
    ssl_provider: str | None
    ssl_keymanager_algorithm: str
    ssl_trustmanager_algorithm: str
    ssl_secure_random_implementation: str | None
    ssl_engine_factory_class: str | None
    ssl_principal_mapping_rules: str
    ssl_allow_dn_changes: bool
    ssl_allow_san_changes: bool
    # tables/sasl.py
    sasl_enabled_mechanisms: tuple[str, ...]
    sasl_mechanism_inter_broker_protocol: str
    sasl_jaas_config: Password | None
    sasl_server_callback_handler_class: str | None
    sasl_server_max_receive_size: int
    sasl_client_callback_handler_class: str | None
    sasl_login_callback_handler_class: str | None
    sasl_login_class: str | None
    sasl_kerberos_service_name: str | None
    sasl_kerberos_kinit_cmd: str
    sasl_kerberos_min_time_before_relogin: int
    sasl_kerberos_principal_to_local_rules: tuple[str, ...]
    sasl_kerberos_ticket_renew_jitter: float
    sasl_kerberos_ticket_renew_window_factor: float
    sasl_login_connect_timeout_ms: int | None
    sasl_login_read_timeout_ms: int | None
    sasl_login_retry_backoff_ms: int
    sasl_login_retry_backoff_max_ms: int
    sasl_login_refresh_window_factor: float
    sasl_login_refresh_window_jitter: float
    sasl_login_refresh_min_period_seconds: int
    sasl_login_refresh_buffer_seconds: int
    sasl_oauthbearer_token_endpoint_url: str | None
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: Password | None
    sasl_oauthbearer_jwks_endpoint_url: str | None
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int
    sasl_oauthbearer_clock_skew_seconds: int
    sasl_oauthbearer_expected_audience: tuple[str, ...]
    sasl_oauthbearer_expected_issuer: str | None
    sasl_oauthbearer_scope_claim_name: str
    sasl_oauthbearer_sub_claim_name: str
    sasl_oauthbearer_jwt_retriever_class: str
    sasl_oauthbearer_jwt_validator_class: str
    sasl_oauthbearer_assertion_algorithm: str
    sasl_oauthbearer_assertion_file: str | None
    sasl_oauthbearer_assertion_template_file: str | None
    sasl_oauthbearer_assertion_private_key_file: str | None
    sasl_oauthbearer_assertion_private_key_passphrase: Password | None
    sasl_oauthbearer_assertion_claim_aud: str | None
    sasl_oauthbearer_assertion_claim_iss: str | None
    sasl_oauthbearer_assertion_claim_sub: str | None
    sasl_oauthbearer_assertion_claim_exp_seconds: int
    sasl_oauthbearer_assertion_claim_nbf_seconds: int
    sasl_oauthbearer_assertion_claim_jti_include: bool
    # tables/validation.py
    confluent_schema_registry_url: tuple[str, ...]
    confluent_basic_auth_credentials_source: str
    confluent_basic_auth_user_info: Password | None
    penstock_validation_workers: int
    penstock_validation_timeout_ms: int
