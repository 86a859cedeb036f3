import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Kafka Streams' answers to scripts. Reads from a file: "T topology", then "P topic key value time" (~ is
 * null), the same with "N" and the value of a header behind it, or "W milliseconds", then "E"; prints
 * "O key value time headers" in hex for each record of the topic `out`, and "E".
 * "D topology" prints the description.
 */
public class StreamsJudge {
    static final Serde<String> S = Serdes.String();
    static final Serde<Long> L = Serdes.Long();
    static final ValueJoiner<String, String, String> JOIN = (l, r) -> l + "+" + r;

    public static void main(String[] arguments) throws Exception {
        Path state = Files.createTempDirectory("judge");
        StringBuilder out = new StringBuilder();
        TopologyTestDriver driver = null;
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "D": out.append(topology(words[1]).describe().toString()).append("E\n"); break;
                case "T": driver = new TopologyTestDriver(topology(words[1]), config(state), Instant.ofEpochMilli(0)); break;
                case "P": case "N": pipe(driver, words); break;
                case "W": driver.advanceWallClockTime(Duration.ofMillis(Long.parseLong(words[1]))); break;
                case "E": print(driver, out); driver.close(); break;
                default: throw new IllegalArgumentException(line);
            }
        }
        System.out.print(out);
    }

    static Properties config(Path state) {
        Properties config = new Properties();
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, "judge");
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
        config.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        config.put(StreamsConfig.DEFAULT_DSL_STORE_CONFIG, System.getProperty("store", "in_memory"));
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, S.getClass().getName());
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, S.getClass().getName());
        config.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0L);
        return config;
    }

    static void pipe(TopologyTestDriver driver, String[] words) {
        TestInputTopic<String, String> topic = driver.createInputTopic(words[1], new StringSerializer(), new StringSerializer());
        RecordHeaders headers = new RecordHeaders();
        if (words[0].equals("N")) headers.add("n", words[5].getBytes());
        topic.pipeInput(new TestRecord<>(text(words[2]), text(words[3]), headers, Long.parseLong(words[4])));
    }

    static String text(String word) {
        return word.equals("~") ? null : word;
    }

    static void print(TopologyTestDriver driver, StringBuilder out) {
        TestOutputTopic<byte[], byte[]> topic = driver.createOutputTopic("out", new ByteArrayDeserializer(), new ByteArrayDeserializer());
        for (TestRecord<byte[], byte[]> record : topic.readRecordsToList()) {
            out.append("O ").append(hex(record.key())).append(' ').append(hex(record.value())).append(' ').append(record.timestamp());
            for (Header header : record.headers()) out.append(' ').append(hex(header.value()));
            out.append('\n');
        }
        out.append("E\n");
    }

    static String hex(byte[] data) {
        if (data == null) return "~";
        StringBuilder text = new StringBuilder("x");
        for (byte b : data) text.append(String.format("%02x", b));
        return text.toString();
    }

    static boolean even(String value) {
        return value != null && (value.charAt(value.length() - 1) - '0') % 2 == 0;
    }

    static String group(String key, String value) {
        return value == null || value.equals("9") ? null : "g" + value.charAt(0);
    }

    static JoinWindows near(long difference, long grace) {
        return JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(difference), Duration.ofMillis(grace));
    }

    static Topology topology(String name) {
        StreamsBuilder builder = new StreamsBuilder();
        build(name, builder);
        return builder.build();
    }

    static void build(String name, StreamsBuilder b) {
        Consumed<String, String> text = Consumed.with(S, S);
        Produced<String, String> asText = Produced.with(S, S);
        Produced<String, Long> asLong = Produced.with(S, L);
        Duration ten = Duration.ofMillis(10), five = Duration.ofMillis(5);
        switch (name) {
            case "filter": b.stream("a", text).filter((k, v) -> even(v)).to("out", asText); break;
            case "filter_not": b.stream("a", text).filterNot((k, v) -> even(v)).to("out", asText); break;
            case "map": b.stream("a", text).map((k, v) -> KeyValue.pair(v, k)).to("out", asText); break;
            case "flat_map": b.stream("a", text).flatMap((k, v) -> v == null ? List.<KeyValue<String, String>>of() : List.of(KeyValue.pair(k, v + "1"), KeyValue.pair(v, v + "2"))).to("out", asText); break;
            case "map_values": b.stream("a", text).mapValues(v -> v + "!").to("out", asText); break;
            case "flat_map_values": b.stream("a", text).flatMapValues(v -> Arrays.asList(v, null, v + "!")).to("out", asText); break;
            case "select_key": b.stream("a", text).selectKey((k, v) -> v).to("out", asText); break;
            case "peek": b.stream("a", text).peek((k, v) -> { }).to("out", asText); break;
            case "merge": b.stream("a", text).mapValues(v -> v + "a").merge(b.stream("b", text).filter((k, v) -> even(v))).to("out", asText); break;
            case "two_topics": b.stream(List.of("a", "b"), text).to("out", asText); break;
            case "branch": {
                Map<String, KStream<String, String>> branches = b.stream("a", text).split()
                    .branch((k, v) -> v == null).branch((k, v) -> even(v)).defaultBranch();
                for (String child : branches.keySet().stream().sorted().collect(Collectors.toList())) {
                    String last = child.substring(child.length() - 1);
                    branches.get(child).mapValues(v -> v + last).to("out", asText);
                }
                break;
            }
            case "by_record": b.stream("a", text).to((k, v, c) -> even(v) ? "out" : "b", asText); break;
            case "repartition": b.stream("a", text).selectKey((k, v) -> v).repartition(Repartitioned.with(S, S)).mapValues(v -> v + "r").to("out", asText); break;
            case "through": {
                b.stream("a", text).selectKey(StreamsJudge::group).to("b", asText);
                b.stream("b", text).groupByKey().count().toStream().to("out", asLong);
                break;
            }
            case "to_table": b.stream("a", text).selectKey((k, v) -> v == null ? null : group(k, v)).toTable(Materialized.with(S, S)).toStream().to("out", asText); break;
            case "count": b.stream("a", text).groupByKey().count().toStream().to("out", asLong); break;
            case "count_groups": b.stream("a", text).groupBy(StreamsJudge::group, Grouped.with(S, S)).count(Materialized.as("counts")).toStream().to("out", asLong); break;
            case "count_unnamed_groups": b.stream("a", text).groupBy(StreamsJudge::group, Grouped.with(S, S)).count().toStream().to("out", asLong); break;
            case "reduce": b.stream("a", text).groupByKey().reduce((l, r) -> l + r).toStream().to("out", asText); break;
            case "aggregate": b.stream("a", text).groupByKey().aggregate(() -> "#", (k, v, t) -> v.equals("3") ? null : t + v, Materialized.with(S, S)).toStream().to("out", asText); break;
            case "cogroup": {
                KGroupedStream<String, String> one = b.stream("a", text).groupByKey();
                KGroupedStream<String, String> two = b.stream("b", text).groupByKey();
                Aggregator<String, String, String> first = (k, v, t) -> t + v, second = (k, v, t) -> v + t;
                one.cogroup(first).cogroup(two, second).aggregate(() -> "#", Materialized.with(S, S)).toStream().to("out", asText);
                break;
            }
            case "cogroup_tumbling": regrouped(b, text).windowedBy(TimeWindows.ofSizeAndGrace(ten, five)).aggregate(() -> "#", Materialized.with(S, S)).toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10), S)); break;
            case "cogroup_hopping": alike(b, text).windowedBy(TimeWindows.ofSizeAndGrace(ten, five).advanceBy(Duration.ofMillis(4))).aggregate(() -> "#", Materialized.as("both")).toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10), S)); break;
            case "cogroup_sliding": alike(b, text).windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ten, five)).aggregate(() -> "#", Materialized.with(S, S)).toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10), S)); break;
            case "cogroup_session": alike(b, text).windowedBy(SessionWindows.ofInactivityGapAndGrace(five, five)).aggregate(() -> "#", (k, one, two) -> one + two, Materialized.with(S, S)).toStream().to("out", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), S)); break;
            case "cogroup_suppress": alike(b, text).windowedBy(TimeWindows.ofSizeAndGrace(ten, five)).aggregate(() -> "#", Materialized.with(S, S)).suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())).toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10), S)); break;
            case "cogroup_regroup": alike(b, text).windowedBy(TimeWindows.ofSizeAndGrace(ten, five)).aggregate(() -> "#", Materialized.with(S, S)).groupBy((k, v) -> KeyValue.pair("n" + v.length(), v), Grouped.with(S, S)).count().toStream().to("out", asLong); break;
            case "table": b.table("a", text).toStream().to("out", asText); break;
            case "table_filter": b.table("a", text).filter((k, v) -> even(v)).toStream().to("out", asText); break;
            case "table_filter_store": b.table("a", text).filter((k, v) -> even(v), Materialized.as("even")).toStream().to("out", asText); break;
            case "table_map": b.table("a", text).mapValues(v -> v.equals("4") ? null : v + "!").toStream().to("out", asText); break;
            case "regroup_count": b.table("a", text).groupBy((k, v) -> KeyValue.pair(group(k, v), v), Grouped.with(S, S)).count().toStream().to("out", asLong); break;
            case "regroup_filtered": b.table("a", text).filter((k, v) -> even(v)).mapValues(v -> v + "0").groupBy((k, v) -> KeyValue.pair(group(k, v), v), Grouped.with(S, S)).count().toStream().to("out", asLong); break;
            case "regroup_reduce": b.table("a", text).groupBy((k, v) -> KeyValue.pair("g" + v.length(), v), Grouped.with(S, S)).reduce((t, v) -> t + v, (t, v) -> t.equals(v) ? null : t + "-" + v).toStream().to("out", asText); break;
            case "regroup_aggregate": b.table("a", text).groupBy((k, v) -> KeyValue.pair("g" + v.length(), v), Grouped.with(S, S)).aggregate(() -> "#", (k, v, t) -> t + v, (k, v, t) -> v.equals("3") ? null : t + "-" + v, Materialized.with(S, S)).toStream().to("out", asText); break;
            case "count_recount": b.stream("a", text).groupByKey().count().groupBy((k, v) -> KeyValue.pair("n" + v, v), Grouped.with(S, L)).count().toStream().to("out", asLong); break;
            case "tumbling": b.stream("a", text).groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(ten, five)).count().toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10), L)); break;
            case "hopping": b.stream("a", text).groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(ten, five).advanceBy(Duration.ofMillis(4))).reduce((l, r) -> l + r).toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10), S)); break;
            case "sliding": b.stream("a", text).groupByKey().windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ten, five)).aggregate(() -> "#", (k, v, t) -> t + v, Materialized.with(S, S)).toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10), S)); break;
            case "sliding_count": b.stream("a", text).groupByKey().windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(five, Duration.ofMillis(20))).count().toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 5), L)); break;
            case "session": b.stream("a", text).groupByKey().windowedBy(SessionWindows.ofInactivityGapAndGrace(five, five)).count().toStream().to("out", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), L)); break;
            case "session_reduce": b.stream("a", text).groupByKey().windowedBy(SessionWindows.ofInactivityGapAndGrace(ten, Duration.ofMillis(2))).reduce((l, r) -> l + r).toStream().to("out", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), S)); break;
            case "suppress_window": b.stream("a", text).groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(ten, five)).count().suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())).toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10), L)); break;
            case "suppress_session": b.stream("a", text).groupByKey().windowedBy(SessionWindows.ofInactivityGapAndGrace(five, five)).count().suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())).toStream().to("out", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), L)); break;
            case "suppress_sliding": b.stream("a", text).groupByKey().windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(five, five)).count().suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())).toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 5), L)); break;
            case "suppress_time": b.table("a", text).suppress(Suppressed.untilTimeLimit(ten, Suppressed.BufferConfig.unbounded())).toStream().to("out", asText); break;
            case "suppress_full": b.table("a", text).suppress(Suppressed.untilTimeLimit(Duration.ofMillis(30), Suppressed.BufferConfig.maxRecords(2))).toStream().to("out", asText); break;
            case "suppress_join": b.table("a", text).suppress(Suppressed.untilTimeLimit(five, Suppressed.BufferConfig.unbounded())).outerJoin(b.table("b", text), JOIN).toStream().to("out", asText); break;
            case "suppress_regroup": b.stream("a", text).groupByKey().count().suppress(Suppressed.untilTimeLimit(five, Suppressed.BufferConfig.unbounded())).groupBy((k, v) -> KeyValue.pair("n" + v, v), Grouped.with(S, L)).count().toStream().to("out", asLong); break;
            case "stream_table": b.stream("a", text).join(b.table("b", text), JOIN).to("out", asText); break;
            case "stream_table_left": b.stream("a", text).leftJoin(b.table("b", text), JOIN).to("out", asText); break;
            case "stream_table_view": b.stream("a", text).selectKey((k, v) -> v == null || v.equals("9") ? null : "k" + v.charAt(0)).join(b.table("b", text).filter((k, v) -> even(v)).mapValues(v -> v + "!"), JOIN, Joined.with(S, S, S)).to("out", asText); break;
            case "stream_global": b.stream("a", text).join(b.globalTable("b", text), (k, v) -> v == null ? null : "k" + v.charAt(0), JOIN).to("out", asText); break;
            case "stream_global_left": b.stream("a", text).leftJoin(b.globalTable("b", text), (k, v) -> v == null || even(v) ? null : "k" + v.charAt(0), JOIN).to("out", asText); break;
            case "table_table": b.table("a", text).join(b.table("b", text), JOIN).toStream().to("out", asText); break;
            case "table_table_left": b.table("a", text).leftJoin(b.table("b", text), JOIN).toStream().to("out", asText); break;
            case "table_table_outer": b.table("a", text).outerJoin(b.table("b", text), JOIN).toStream().to("out", asText); break;
            case "table_table_store": b.table("a", text).outerJoin(b.table("b", text), JOIN, Materialized.as("joined")).toStream().to("out", asText); break;
            case "stream_table_left_groups": b.stream("a", text).selectKey((k, v) -> group(k, v)).leftJoin(b.table("b", text), JOIN, Joined.with(S, S, S)).to("out", asText); break;
            case "table_view_join": { KTable<String, String> t = b.table("a", text); t.join(t.mapValues(v -> v + "!").filter((k, v) -> !v.equals("3!")), JOIN).toStream().to("out", asText); break; }
            case "table_three": b.table("a", text).leftJoin(b.table("b", text), JOIN).outerJoin(b.stream("c", text).groupByKey().reduce((l, r) -> r), JOIN).toStream().to("out", asText); break;
            case "join_regroup": b.table("a", text).outerJoin(b.table("b", text), JOIN).filter((k, v) -> !v.startsWith("5")).groupBy((k, v) -> KeyValue.pair("g" + v.charAt(0), v), Grouped.with(S, S)).count().toStream().to("out", asLong); break;
            case "stream_stream": b.stream("a", text).join(b.stream("b", text), JOIN, near(5, 3), StreamJoined.with(S, S, S)).to("out", asText); break;
            case "self_join": b.stream("a", text).join(b.stream("a", text), JOIN, near(4, 2), StreamJoined.with(S, S, S)).to("out", asText); break;
            case "stream_stream_left": b.stream("a", text).leftJoin(b.stream("b", text), JOIN, near(5, 3), StreamJoined.with(S, S, S)).to("out", asText); break;
            case "stream_stream_outer": b.stream("a", text).outerJoin(b.stream("b", text), JOIN, near(5, 3), StreamJoined.with(S, S, S)).to("out", asText); break;
            case "stream_stream_uneven": b.stream("a", text).outerJoin(b.stream("b", text), JOIN, near(4, 2).before(Duration.ofMillis(8)).after(Duration.ofMillis(1)), StreamJoined.with(S, S, S)).to("out", asText); break;
            case "stream_stream_groups": b.stream("a", text).selectKey((k, v) -> group(k, v)).leftJoin(b.stream("b", text).selectKey((k, v) -> group(k, v)), JOIN, near(5, 3), StreamJoined.with(S, S, S)).to("out", asText); break;
            case "foreign_key": b.table("a", text).join(b.table("b", text), v -> v.equals("9") ? null : "k" + v.charAt(0), JOIN).toStream().to("out", asText); break;
            case "foreign_key_left": b.table("a", text).leftJoin(b.table("b", text), v -> v.equals("9") ? null : "k" + v.charAt(0), JOIN).toStream().to("out", asText); break;
            case "process":
                b.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("sums"), S, S));
                b.stream("a", text).process(Summing::new, "sums").to("out", asText);
                break;
            case "named_stateless": {
                Consumed<String, String> read = Consumed.with(S, S).withName("read");
                KStream<String, String> first = b.stream("a", read).filter((k, v) -> even(v), Named.as("even")).peek((k, v) -> { }, Named.as("look"));
                KStream<String, String> other = b.stream("b", text).filterNot((k, v) -> even(v), Named.as("odd")).map((k, v) -> KeyValue.pair(v, k), Named.as("turned"));
                KStream<String, String> both = first.merge(other, Named.as("both")).selectKey((k, v) -> v, Named.as("keyed"));
                Map<String, KStream<String, String>> parts = both.split(Named.as("part-")).branch((k, v) -> even(v), Branched.as("even")).defaultBranch(Branched.as("rest"));
                parts.get("part-rest").repartition(Repartitioned.with(S, S).withName("again")).mapValues(v -> v + "!", Named.as("loud"))
                    .flatMapValues(v -> List.of(v), Named.as("flat")).to("out", asText.withName("write"));
                parts.get("part-even").flatMap((k, v) -> List.of(KeyValue.pair(k, v)), Named.as("flatter")).to("c", Produced.with(S, S));
                break;
            }
            case "named_tables": {
                KTable<String, String> one = b.table("a", Consumed.with(S, S).withName("first")).filter((k, v) -> even(v), Named.as("even")).mapValues(v -> v + "!", Named.as("loud"));
                KTable<String, String> other = b.stream("b", text).toTable(Named.as("second")).suppress(Suppressed.<String>untilTimeLimit(five, Suppressed.BufferConfig.unbounded()).withName("held"));
                one.outerJoin(other, JOIN, Named.as("both")).filter((k, v) -> !v.equals("2!+2")).toStream(Named.as("changes")).mapValues(v -> v + "?").to("out", asText);
                break;
            }
            case "named_aggregates": {
                KStream<String, String> stream = b.stream("a", text).mapValues(v -> v + "1");
                stream.groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(ten, five)).count(Named.as("windows")).toStream().to("b", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10), L));
                stream.groupByKey().windowedBy(SessionWindows.ofInactivityGapAndGrace(five, five)).count(Named.as("gaps")).toStream().to("c", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), L));
                KGroupedTable<String, String> groups = stream.groupByKey().reduce((l, r) -> l + r, Named.as("sum"), Materialized.as("sums"))
                    .groupBy((k, v) -> KeyValue.pair(group(k, v), v), Grouped.with("groups", S, S));
                groups.count(Named.as("counts")).toStream().to("out", asLong);
                groups.reduce((t, v) -> t + v, (t, v) -> t, Materialized.with(S, S)).toStream().to("d", Produced.with(S, S));
                break;
            }
            case "stream_global_named": {
                KStream<String, String> stream = b.stream("a", text).selectKey((k, v) -> v == null || v.equals("9") ? null : "k" + v.charAt(0)).join(b.table("c", text), JOIN, Joined.with(S, S, S, "found"));
                stream = stream.leftJoin(b.globalTable("b", Consumed.with(S, S).withName("all")), (k, v) -> v == null || even(v) ? null : "k" + v.charAt(0), JOIN, Named.as("any"));
                b.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("sums"), S, S));
                stream.process(Summing::new, Named.as("adder"), "sums").mapValues(v -> v + "!").to("out", asText);
                break;
            }
            case "named_groups": {
                KGroupedStream<String, String> groups = b.stream("a", text).groupBy(StreamsJudge::group, Grouped.with("by-value", S, S));
                groups.count().toStream().to("out", asLong);
                groups.reduce((l, r) -> l + r).toStream().to("b", Produced.with(S, S));
                break;
            }
            case "named_rekeyed": b.stream("a", text).selectKey(StreamsJudge::group).groupByKey(Grouped.with("by-group", S, S)).reduce((l, r) -> l + r).toStream().to("out", asText); break;
            case "named_cogroup": {
                KGroupedStream<String, String> one = b.stream("a", text).groupByKey();
                KGroupedStream<String, String> two = b.stream("b", text).groupBy(StreamsJudge::group, Grouped.with("second", S, S));
                together(one, two).aggregate(() -> "#", Named.as("both"), Materialized.with(S, S)).toStream().to("out", asText);
                break;
            }
            case "named_join": b.stream("a", text).join(b.stream("b", text), JOIN, near(5, 3), StreamJoined.with(S, S, S).withStoreName("kept").withName("meet")).mapValues(v -> v + "!").to("out", asText); break;
            case "named_join_left": b.stream("a", text).leftJoin(b.stream("b", text), JOIN, near(5, 3), StreamJoined.with(S, S, S).withStoreName("kept")).to("out", asText); break;
            case "named_join_outer": b.stream("a", text).outerJoin(b.stream("b", text), JOIN, near(5, 3), StreamJoined.with(S, S, S).withStoreName("kept").withName("meet")).to("out", asText); break;
            case "foreign_key_named": b.table("a", text).join(b.table("b", text), v -> v.equals("9") ? null : "k" + v.charAt(0), JOIN, TableJoined.as("points")).mapValues(v -> v + "!").toStream().to("out", asText); break;
            case "foreign_key_left_named": b.table("a", text).leftJoin(b.table("b", text), v -> v.equals("9") ? null : "k" + v.charAt(0), JOIN, TableJoined.as("points"), Materialized.as("rows")).toStream().to("out", asText); break;
            default: recipe(name, b, text, asText, asLong, ten, five);
        }
    }

    /** What users write: several operations one behind the other. */
    static void recipe(String name, StreamsBuilder b, Consumed<String, String> text, Produced<String, String> asText, Produced<String, Long> asLong, Duration ten, Duration five) {
        switch (name) {
            case "own_count": {
                KStream<String, String> stream = b.stream("a", text);
                stream.join(stream.groupByKey().count().mapValues(n -> "" + n), JOIN).to("out", asText);
                break;
            }
            case "own_table": {
                KStream<String, String> stream = b.stream("a", text);
                KTable<String, String> table = stream.toTable(Materialized.as("own"));
                stream.leftJoin(table, JOIN).to("out", asText);
                break;
            }
            case "own_merge": {
                KStream<String, String> stream = b.stream("a", text);
                stream.filter((k, v) -> even(v)).merge(stream.mapValues(v -> v + "!")).merge(stream).to("out", asText);
                break;
            }
            case "self_table_join": { KTable<String, String> t = b.table("a", text); t.outerJoin(t, JOIN).toStream().to("out", asText); break; }
            case "windows_filtered_suppress": b.stream("a", text).groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(ten, five)).count().filter((k, n) -> n % 2 == 0).mapValues(n -> "" + n * 10).suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())).toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10), S)); break;
            case "windows_joined": {
                KTable<Windowed<String>, Long> one = b.stream("a", text).groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(ten, five)).count();
                KTable<Windowed<String>, Long> two = b.stream("b", text).groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(ten, five)).count();
                one.leftJoin(two, (l, r) -> l + "+" + r).toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10), S));
                break;
            }
            case "sessions_joined": {
                SessionWindows gap = SessionWindows.ofInactivityGapAndGrace(five, five);
                KTable<Windowed<String>, Long> one = b.stream("a", text).groupByKey().windowedBy(gap).count();
                KTable<Windowed<String>, Long> two = b.stream("b", text).groupByKey().windowedBy(gap).count();
                one.outerJoin(two.filter((k, n) -> n % 2 == 1), (l, r) -> l + "+" + r).toStream().to("out", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), S));
                break;
            }
            case "sliding_joined": {
                SlidingWindows windows = SlidingWindows.ofTimeDifferenceAndGrace(five, five);
                KTable<Windowed<String>, Long> one = b.stream("a", text).groupByKey().windowedBy(windows).count();
                KTable<Windowed<String>, Long> two = b.stream("b", text).groupByKey().windowedBy(windows).count();
                one.join(two, (l, r) -> l + "+" + r).toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 5), S));
                break;
            }
            case "windows_unkeyed": b.stream("a", text).groupBy((k, v) -> group(k, v), Grouped.with(S, S)).windowedBy(TimeWindows.ofSizeWithNoGrace(ten)).count().toStream((k, n) -> k.key() + "@" + k.window().start()).to("out", asLong); break;
            case "windows_best": b.stream("a", text).groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(ten, five)).count()
                .groupBy((k, n) -> KeyValue.pair("" + k.window().start(), k.key() + ":" + n), Grouped.with(S, S))
                .aggregate(() -> "", (k, v, t) -> t + "," + v, (k, v, t) -> t.replace("," + v, ""), Materialized.with(S, S)).toStream().to("out", asText); break;
            case "windows_null": b.stream("a", text).groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(ten, five).advanceBy(five)).aggregate(() -> "#", (k, v, t) -> "3".equals(v) ? null : t + v, Materialized.with(S, S)).toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10), S)); break;
            case "session_null": b.stream("a", text).groupByKey().windowedBy(SessionWindows.ofInactivityGapAndGrace(five, five)).aggregate(() -> "#", (k, v, t) -> "3".equals(v) ? null : t + v, (k, l, r) -> l + r, Materialized.with(S, S)).toStream().to("out", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), S)); break;
            case "sliding_null": b.stream("a", text).groupByKey().windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ten, five)).aggregate(() -> "#", (k, v, t) -> "3".equals(v) ? null : t + v, Materialized.with(S, S)).toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10), S)); break;
            case "sliding_groups": b.stream("a", text).groupBy(StreamsJudge::group, Grouped.with(S, S)).windowedBy(SlidingWindows.ofTimeDifferenceWithNoGrace(five)).reduce((l, r) -> l + r).toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 5), S)); break;
            case "session_grouped": b.stream("a", text).groupByKey().windowedBy(SessionWindows.ofInactivityGapWithNoGrace(five)).count().groupBy((k, n) -> KeyValue.pair(k.key(), n), Grouped.with(S, L)).reduce((t, n) -> t + n, (t, n) -> t - n).toStream().to("out", asLong); break;
            case "session_limited": b.stream("a", text).groupByKey().windowedBy(SessionWindows.ofInactivityGapAndGrace(five, ten)).reduce((l, r) -> l + r).suppress(Suppressed.untilTimeLimit(five, Suppressed.BufferConfig.maxRecords(2))).toStream().to("out", Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), S)); break;
            case "suppress_now": b.table("a", text).suppress(Suppressed.untilTimeLimit(Duration.ZERO, Suppressed.BufferConfig.unbounded())).toStream().to("out", asText); break;
            case "suppress_view": b.table("a", text).filter((k, v) -> even(v)).suppress(Suppressed.untilTimeLimit(five, Suppressed.BufferConfig.unbounded())).mapValues(v -> v + "!").toStream().to("out", asText); break;
            case "suppress_twice": b.table("a", text).suppress(Suppressed.untilTimeLimit(five, Suppressed.BufferConfig.unbounded())).suppress(Suppressed.untilTimeLimit(Duration.ofMillis(3), Suppressed.BufferConfig.unbounded())).toStream().to("out", asText); break;
            case "suppress_lookup": b.stream("a", text).leftJoin(b.table("b", text).suppress(Suppressed.untilTimeLimit(five, Suppressed.BufferConfig.unbounded())), JOIN).to("out", asText); break;
            case "three_streams": b.stream("a", text).join(b.stream("b", text), JOIN, near(5, 3), StreamJoined.with(S, S, S)).leftJoin(b.stream("c", text), JOIN, near(3, 0), StreamJoined.with(S, S, S)).to("out", asText); break;
            case "join_then_windows": b.stream("a", text).outerJoin(b.stream("b", text), JOIN, near(5, 3), StreamJoined.with(S, S, S)).groupByKey(Grouped.with(S, S)).windowedBy(TimeWindows.ofSizeAndGrace(ten, five)).reduce((l, r) -> l + "," + r).toStream().to("out", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10), S)); break;
            case "join_exactly": b.stream("a", text).leftJoin(b.stream("b", text), JOIN, near(0, 0), StreamJoined.with(S, S, S)).to("out", asText); break;
            case "join_only_after": b.stream("a", text).outerJoin(b.stream("b", text), JOIN, near(8, 1).before(Duration.ofMillis(-2)), StreamJoined.with(S, S, S)).to("out", asText); break;
            case "join_sessions": {
                KStream<String, String> one = b.stream("a", text).groupByKey().windowedBy(SessionWindows.ofInactivityGapAndGrace(five, five)).count().toStream().filter((k, n) -> n != null).map((k, n) -> KeyValue.pair(k.key(), "" + n));
                one.join(b.stream("b", text), JOIN, near(5, 3), StreamJoined.with(S, S, S)).to("out", asText);
                break;
            }
            case "cogroup_three": {
                Aggregator<String, String, String> first = (k, v, t) -> t + "a" + v, second = (k, v, t) -> t + "b" + v, third = (k, v, t) -> v.equals("3") ? null : t + "c" + v;
                b.stream("a", text).groupByKey().cogroup(first).cogroup(b.stream("b", text).groupBy(StreamsJudge::group, Grouped.with(S, S)), second)
                    .cogroup(b.stream("c", text).groupBy(StreamsJudge::group, Grouped.with("third", S, S)), third).aggregate(() -> "#", Materialized.with(S, S)).filter((k, v) -> v.length() < 20).toStream().to("out", asText);
                break;
            }
            case "foreign_chain": b.table("a", text).leftJoin(b.table("b", text), v -> v.equals("9") ? null : "k" + v.charAt(0), JOIN).join(b.table("c", text), v -> "k" + v.charAt(v.length() - 1), JOIN).toStream().to("out", asText); break;
            case "foreign_self": { KTable<String, String> t = b.table("a", text); t.leftJoin(t, v -> "k" + v.charAt(0), JOIN).toStream().to("out", asText); break; }
            case "foreign_count": b.table("a", text).join(b.table("b", text), v -> "k" + v.charAt(0), JOIN).groupBy((k, v) -> KeyValue.pair("g" + v.charAt(0), v), Grouped.with(S, S)).count().toStream().to("out", asLong); break;
            case "foreign_views": b.table("a", text).filter((k, v) -> !v.equals("5")).join(b.stream("b", text).groupByKey().reduce((l, r) -> r.equals("3") ? null : r).mapValues(v -> v + "!"), v -> "k" + v.charAt(0), JOIN).toStream().to("out", asText); break;
            case "foreign_by_key": b.table("a", text).leftJoin(b.table("b", text), (k, v) -> v.equals("9") ? null : k, JOIN).toStream().to("out", asText); break;
            case "global_twice": {
                GlobalKTable<String, String> all = b.globalTable("b", text);
                b.stream("a", text).leftJoin(all, (k, v) -> k, JOIN).join(all, (k, v) -> v.startsWith("9") ? null : "k" + v.charAt(0), JOIN).to("out", asText);
                break;
            }
            case "reduce_null": b.stream("a", text).groupByKey().reduce((l, r) -> r.equals("3") ? null : l + r).toStream().to("out", asText); break;
            case "view_stored_join": b.table("a", text).mapValues(v -> v + "!", Materialized.as("loud")).filter((k, v) -> !v.equals("4!"), Materialized.as("kept")).leftJoin(b.table("b", text).filterNot((k, v) -> even(v)), JOIN, Materialized.as("both")).toStream().to("out", asText); break;
            case "table_again": b.table("a", text).toStream().selectKey((k, v) -> v == null ? k : "k" + v.charAt(0)).toTable(Materialized.with(S, S)).leftJoin(b.table("b", text), JOIN).toStream().to("out", asText); break;
            case "branch_merge": {
                Map<String, KStream<String, String>> parts = b.stream("a", text).split(Named.as("p-")).branch((k, v) -> v == null, Branched.as("none")).branch((k, v) -> even(v), Branched.as("even")).noDefaultBranch();
                parts.get("p-none").mapValues(v -> "was null").merge(parts.get("p-even")).to("out", asText);
                break;
            }
            case "newest": {
                b.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("seen"), S, S));
                b.stream("a", text).processValues(Newest::new, "seen").groupByKey().count().toStream().to("out", asLong);
                break;
            }
            case "flushing": {
                b.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("held"), S, S));
                b.stream("a", text).process(Flushing::new, "held").to("out", asText);
                break;
            }
            default: throw new IllegalArgumentException(name);
        }
    }

    static CogroupedKStream<String, String> alike(StreamsBuilder b, Consumed<String, String> text) {
        return together(b.stream("a", text).groupByKey(), b.stream("b", text).groupByKey());
    }

    static CogroupedKStream<String, String> regrouped(StreamsBuilder b, Consumed<String, String> text) {
        KGroupedStream<String, String> one = b.stream("a", text).groupByKey();
        return together(one, b.stream("b", text).groupBy(StreamsJudge::group, Grouped.with(S, S)));
    }

    static CogroupedKStream<String, String> together(KGroupedStream<String, String> one, KGroupedStream<String, String> two) {
        Aggregator<String, String, String> first = (k, v, t) -> t + v, second = (k, v, t) -> v + t;
        return one.cogroup(first).cogroup(two, second);
    }

    static class Summing implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, String> store;

        @Override
        public void init(ProcessorContext<String, String> given) {
            context = given;
            store = given.getStateStore("sums");
            given.schedule(Duration.ofMillis(7), PunctuationType.STREAM_TIME, now -> tell("s", now));
            given.schedule(Duration.ofMillis(10), PunctuationType.WALL_CLOCK_TIME, now -> tell("w", now));
        }

        private void tell(String kind, long now) {
            try (KeyValueIterator<String, String> all = store.range("k2", null)) {
                while (all.hasNext()) {
                    KeyValue<String, String> one = all.next();
                    context.forward(new Record<>(one.key, kind + one.value, now));
                }
            }
        }

        @Override
        public void process(Record<String, String> record) {
            if (record.key() == null) return;
            if (record.value() == null) {
                store.delete(record.key());
                return;
            }
            String before = store.get(record.key());
            store.put(record.key(), before == null ? record.value() : before + record.value());
            context.forward(record.withValue(store.get(record.key())));
        }
    }

    /** Lets a value through that is not the one before it, and forgets what is old. */
    static class Newest implements FixedKeyProcessor<String, String, String> {
        private FixedKeyProcessorContext<String, String> context;
        private KeyValueStore<String, String> store;

        @Override
        public void init(FixedKeyProcessorContext<String, String> given) {
            context = given;
            store = given.getStateStore("seen");
            given.schedule(Duration.ofMillis(20), PunctuationType.STREAM_TIME, now -> {
                try (KeyValueIterator<String, String> all = store.all()) {
                    while (all.hasNext()) store.delete(all.next().key);
                }
            });
        }

        @Override
        public void process(FixedKeyRecord<String, String> record) {
            if (record.key() == null || record.value() == null) return;
            if (record.value().equals(store.get(record.key()))) return;
            store.put(record.key(), record.value());
            context.forward(record);
        }
    }

    /** Holds records back until it has three keys or the clock says so; stops ticking after three times. */
    static class Flushing implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, String> store;
        private Cancellable ticking;
        private int ticks = 0;

        @Override
        public void init(ProcessorContext<String, String> given) {
            context = given;
            store = given.getStateStore("held");
            ticking = given.schedule(Duration.ofMillis(10), PunctuationType.WALL_CLOCK_TIME, now -> {
                flush(now);
                if (++ticks == 3) ticking.cancel();
            });
        }

        private void flush(long now) {
            try (KeyValueIterator<String, String> all = store.reverseAll()) {
                while (all.hasNext()) {
                    KeyValue<String, String> one = all.next();
                    context.forward(new Record<>(one.key, one.value + "@" + context.currentStreamTimeMs(), now));
                }
            }
            for (String key : List.of("k1", "k12", "k2", "k3")) store.delete(key);
        }

        @Override
        public void process(Record<String, String> record) {
            if (record.key() == null) return;
            String before = store.putIfAbsent(record.key(), record.value());
            if (before != null) store.put(record.key(), before + record.value());
            if (store.approximateNumEntries() >= 3) flush(record.timestamp());
        }
    }
}
