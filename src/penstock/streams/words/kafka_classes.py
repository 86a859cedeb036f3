"""Kafka Streams' classes that are none here, and what its hosts, stores and contexts can besides.

As with the words of the DSL: whoever asks for one is told how it is said here, or why it is not.
"""

from collections.abc import Mapping

_SERDES = "serdes are STRING, LONG, INTEGER, DOUBLE, BYTES, JSON and Serde(name, write, read)."
_FUNCTION = "any function will do."
_FOLLOW = "KafkaStreams.store(name) follows a store whole, in any process, and answers by itself."
_HANDLER = "errors.dead.letter.queue.topic.name says whether a bad record stops the application."
_EXTRACTOR = "give stream() an intake=..., which may take the record's time from its value."
_MEMBER = "it is what an operation returns, and never made by hand."
_PROCESS = "derive from Processor, and give the class to process or process_values."
_STORE = "add_state_store(name, key=..., value=...) makes a key-value store; to keep several times "
_STORE += "of a key, put the time into its keys or a list into its values."
_LOOK = "store(name) looks into a store of any kind: get, range and all, or fetch for windows."
_ONE_PROCESS = "one process has the whole application, and any number may follow its stores."
_THREADS = "Spark decides how many tasks run at once; see --master."
_BATCH = "the host commits when a batch is through, all that it made at once."

CLASSES: Mapping[str, str] = {
    **dict.fromkeys(("Aggregator", "Initializer", "Merger", "Reducer", "Predicate"), _FUNCTION),
    **dict.fromkeys(("ForeachAction", "KeyValueMapper", "ValueJoiner", "ValueMapper"), _FUNCTION),
    **dict.fromkeys(("Punctuator", "StateListener"), _FUNCTION),
    **dict.fromkeys(("TimestampExtractor", "FailOnInvalidTimestamp"), _EXTRACTOR),
    **dict.fromkeys(
        ("LogAndSkipOnInvalidTimestamp", "UsePartitionTimeOnInvalidTimestamp"), _HANDLER
    ),
    **dict.fromkeys(("WallclockTimestampExtractor",), _EXTRACTOR),
    **dict.fromkeys(("DeserializationExceptionHandler", "ProductionExceptionHandler"), _HANDLER),
    **dict.fromkeys(("ProcessingExceptionHandler", "LogAndFailExceptionHandler"), _HANDLER),
    **dict.fromkeys(("LogAndContinueExceptionHandler",), _HANDLER),
    **dict.fromkeys(("KGroupedStream", "KGroupedTable", "TimeWindowedKStream"), _MEMBER),
    **dict.fromkeys(("SessionWindowedKStream", "CogroupedKStream", "BranchedKStream"), _MEMBER),
    **dict.fromkeys(("TimeWindowedCogroupedKStream", "SessionWindowedCogroupedKStream"), _MEMBER),
    **dict.fromkeys(("FixedKeyProcessor", "FixedKeyProcessorContext", "FixedKeyRecord"), _PROCESS),
    **dict.fromkeys(("ProcessorSupplier", "FixedKeyProcessorSupplier"), _PROCESS),
    **dict.fromkeys(("Transformer", "ValueTransformer", "ValueTransformerWithKey"), _PROCESS),
    **dict.fromkeys(("Stores", "StoreBuilder", "KeyValueStore", "StateStore"), _STORE),
    **dict.fromkeys(("WindowStore", "SessionStore", "VersionedKeyValueStore"), _STORE),
    **dict.fromkeys(("QueryableStoreTypes", "StoreQueryParameters", "KeyQueryMetadata"), _FOLLOW),
    **dict.fromkeys(("StreamsMetadata", "StateQueryRequest", "KeyQuery", "RangeQuery"), _FOLLOW),
    **dict.fromkeys(("ReadOnlyKeyValueStore", "ReadOnlyWindowStore"), _FOLLOW),
    **dict.fromkeys(("ReadOnlySessionStore",), _FOLLOW),
    **dict.fromkeys(("Serdes",), _SERDES),
    "AutoOffsetReset": "auto.offset.reset of the application says where inputs begin.",
    "BufferConfig": "table.suppress_until_time_limit(ms, records_max=..., emits_when_full=...); "
    "nothing counts bytes.",
    "Cancellable": "it is what schedule returns.",
    "DslStoreSuppliers": "state lies in Spark's checkpoint and in a changelog, whatever it is of.",
    "KeyValue": "a pair is a tuple of two.",
    "PunctuationType": 'schedule takes "stream" or "wall".',
    "Record": "it is called StreamRecord.",
    "RecordContext": "the topic's name is chosen by the record itself.",
    "StreamPartitioner": "a record goes to the partition of its key.",
    "StreamsConfig": "settings are a dict by Kafka's names, such as application.id.",
    "StreamsUncaughtExceptionHandler": "a stage that fails is tried again, restarts_max times.",
    "TestInputTopic": "TestDriver.pipe_input(topic, key, value, timestamp_ms) writes a record.",
    "TestOutputTopic": "TestDriver.read_output(topic) gives a record, read_all(topic) all.",
    "TestRecord": "it is called StreamRecord.",
    "TopicNameExtractor": "to() takes a function of the record that returns the topic's name.",
    "Topology": "StreamsBuilder makes it: stream for addSource, process for addProcessor, to for "
    "addSink, and add_state_store; build() returns a StreamsTopology.",
    "TopologyDescription": "describe() returns the text.",
    "TopologyTestDriver": "it is called TestDriver.",
    "ValueAndTimestamp": "it is called Stamped.",
    "WindowedSerdes": "they are time_windowed(serde, size_ms=...) and session_windowed(serde).",
}

_BACKWARDS = "turn the answer round with reversed(list(...))."
_SESSIONS = "fetch(key, from_ms, to_ms) gives the sessions that touch a time."
_ALL_KEYS = "all() gives the windows of all keys, by key and time."
_ASKED: Mapping[str, str] = {
    **dict.fromkeys(("reverseAll", "reverseRange", "backwardAll", "backwardFetch"), _BACKWARDS),
    **dict.fromkeys(("backwardFetchAll", "backwardFindSessions"), _BACKWARDS),
    **dict.fromkeys(("fetchSession", "findSessions"), _SESSIONS),
    "approximateNumEntries": "count what all() gives.",
    "fetchAll": _ALL_KEYS,
}

HOSTS: Mapping[str, Mapping[str, str]] = {
    "TestDriver": {
        "advanceWallClockTime": "call advance_wall_clock(ms).",
        "createInputTopic": "pipe_input(topic, key, value, timestamp_ms) writes to any topic.",
        "createOutputTopic": "read_output(topic) gives a record, read_all(topic) all of them.",
        "getAllStateStores": "store_names names them, and store(name) looks into one.",
        "getKeyValueStore": _LOOK,
        "getSessionStore": _LOOK,
        "getSessionStoreWithHeaders": _LOOK,
        "getStateStore": _LOOK,
        "getTimestampedKeyValueStore": f"{_LOOK[:-1]}; get_stamped gives value and time.",
        "getTimestampedKeyValueStoreWithHeaders": _LOOK,
        "getTimestampedWindowStore": _LOOK,
        "getTimestampedWindowStoreWithHeaders": _LOOK,
        "getVersionedKeyValueStore": "tables keep the newest row; there are no versioned stores.",
        "getWindowStore": _LOOK,
        "metrics": "it measures nothing; count what read_all gives.",
    },
    "KafkaStreams": {
        "addStreamThread": _THREADS,
        "allLocalStorePartitionLags": "a store's wait_until_current() waits until it is caught up.",
        "clientInstanceIds": "it pushes no metrics to the brokers.",
        "isPaused": "it cannot be paused; state tells how it is.",
        "metadataForAllStreamsClients": _ONE_PROCESS,
        "metadataForLocalThreads": "stages tells how each stage is doing.",
        "metrics": "stages tells of batches, records and lag, penstock streams status too.",
        "pause": "close it; a new KafkaStreams goes on where it stopped.",
        "query": "store(name) asks a store by key, range and window.",
        "queryMetadataForKey": _ONE_PROCESS,
        "removeStreamThread": _THREADS,
        "resume": "start a new KafkaStreams; it goes on where the last one stopped.",
        "setGlobalStateRestoreListener": "report=... is told when state is restored.",
        "setStandbyUpdateListener": "there are no standbys: state lies in the checkpoint.",
        "setStateListener": "call on_state_change(listener).",
        "setUncaughtExceptionHandler": "a stage that fails is tried again, restarts_max times; "
        "on_state_change tells of ERROR, and failure why.",
        "streamsMetadataForStore": _ONE_PROCESS,
    },
    "StoreReader": _ASKED,
    "StoreFollower": _ASKED,
    "StoreView": _ASKED,
    "TaskContext": {
        "appConfigs": "give the processor what it must know where it is made.",
        "appConfigsWithPrefix": "give the processor what it must know where it is made.",
        "applicationId": "a processor does not know its application.",
        "commit": _BATCH,
        "currentStreamTimeMs": "read stream_time_ms.",
        "currentSystemTimeMs": "read wall_clock_ms.",
        "getStateStore": "call store(name).",
        "keySerde": "a processor's stores and sinks have serdes of their own.",
        "metrics": "count in a store, or forward what you counted.",
        "recordMetadata": "give stream() an intake=..., which is told partition and offset.",
        "stateDir": "what must last belongs in a store.",
        "taskId": "a processor does not know its task.",
        "valueSerde": "a processor's stores and sinks have serdes of their own.",
    },
    "TimeWindows": {
        "advanceBy": "TimeWindows.of(size_ms, advance_ms=...).",
        "ofSizeAndGrace": "TimeWindows.of(size_ms, grace_ms=...).",
        "ofSizeWithNoGrace": "TimeWindows.of(size_ms).",
    },
    "SlidingWindows": {
        "ofTimeDifferenceAndGrace": "SlidingWindows.of(difference_ms, grace_ms=...).",
        "ofTimeDifferenceWithNoGrace": "SlidingWindows.of(difference_ms).",
    },
    "SessionWindows": {
        "ofInactivityGapAndGrace": "SessionWindows.of(gap_ms, grace_ms=...).",
        "ofInactivityGapWithNoGrace": "SessionWindows.of(gap_ms).",
    },
    "JoinWindows": {
        "after": "JoinWindows.of(difference_ms, after_ms=...).",
        "before": "JoinWindows.of(difference_ms, before_ms=...).",
        "grace": "JoinWindows.of(difference_ms, grace_ms=...).",
        "ofTimeDifferenceAndGrace": "JoinWindows.of(difference_ms, grace_ms=...).",
        "ofTimeDifferenceWithNoGrace": "JoinWindows.of(difference_ms).",
    },
}
