"""What Connect remembers: configurations, offsets and statuses, in Apache Connect's own records.

    config_records, offset_records, status_records   what a record says (pure)
    config_state, status_state                       what all records together say (pure)
    state_log, topic_reader                          a topic, or memory: read, and appended to
    offset_file, java_map                            offsets of standalone mode

An Apache worker can take over what is written here, and the other way round.
"""
