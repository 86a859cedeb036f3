import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.processor.TimestampExtractor;

/**
 * Kafka Streams at the works of the bench: a line "work application input output records" on
 * standard input is one run, and a line "seconds cpuSeconds" on standard output its answer. The
 * time is from the first record until the offsets of the last are committed.
 */
public class StreamsPeer {
    static volatile long firstNs;
    static final Serde<String> TEXT = Serdes.String();

    public static class Watch implements TimestampExtractor {
        @Override
        public long extract(ConsumerRecord<Object, Object> record, long partitionTime) {
            if (firstNs == 0) {
                firstNs = System.nanoTime();
            }
            return record.timestamp();
        }
    }

    public static void main(String[] arguments) throws Exception {
        String address = arguments[0];
        Path state = Path.of(arguments[1]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            String line;
            while ((line = lines.readLine()) != null) {
                String[] words = line.split(" ");
                run(admin, address, state, words);
            }
        }
    }

    static void run(Admin admin, String address, Path state, String[] words) throws Exception {
        String application = words[1];
        long records = Long.parseLong(words[4]);
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, address);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put("auto.offset.reset", "earliest");
        settings.put(
            StreamsConfig.DEFAULT_TIMESTAMP_EXTRACTOR_CLASS_CONFIG, Watch.class.getName());
        firstNs = 0;
        KafkaStreams streams = new KafkaStreams(topology(words[0], words[2], words[3]), settings);
        try {
            streams.start();
            while (firstNs == 0) {
                Thread.sleep(1);
            }
            long begunNs = firstNs;
            long begunCpuNs = cpuNs();
            while (committed(admin, application, words[2]) < records) {
                Thread.sleep(20);
            }
            double seconds = (System.nanoTime() - begunNs) / 1e9;
            System.out.println(seconds + " " + (cpuNs() - begunCpuNs) / 1e9);
            System.out.flush();
        } finally {
            streams.close(Duration.ofSeconds(60));
            streams.cleanUp();
        }
    }

    static long cpuNs() {
        return ((com.sun.management.OperatingSystemMXBean)
                ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime();
    }

    /** How many records of the input are behind the group: an ended transaction takes an offset. */
    static long committed(Admin admin, String application, String input) throws Exception {
        return admin.listConsumerGroupOffsets(application).partitionsToOffsetAndMetadata().get()
            .entrySet().stream()
            .filter(one -> one.getKey().topic().equals(input) && one.getValue() != null)
            .mapToLong(one -> one.getValue().offset())
            .sum();
    }

    static Topology topology(String work, String input, String output) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> stream = builder.stream(input, Consumed.with(TEXT, TEXT));
        switch (work) {
            case "map" ->
                stream
                    .filter((key, value) -> value.substring(11, 12).compareTo("5") < 0)
                    .mapValues(value -> value.substring(0, 40).toUpperCase() + "!")
                    .to(output, Produced.with(TEXT, TEXT));
            case "count" ->
                stream.groupByKey().count(Materialized.as("counts")).toStream()
                    .to(output, Produced.with(TEXT, Serdes.Long()));
            case "aggregate" ->
                stream.groupByKey()
                    .aggregate(
                        () -> 0L,
                        (key, value, total) -> total + value.length(),
                        Materialized.with(TEXT, Serdes.Long()))
                    .toStream()
                    .to(output, Produced.with(TEXT, Serdes.Long()));
            case "join" ->
                stream
                    .join(
                        builder.table(input + "-table", Consumed.with(TEXT, TEXT)),
                        (value, row) -> value.substring(0, 12) + row)
                    .to(output, Produced.with(TEXT, TEXT));
            case "windows" ->
                stream.groupByKey()
                    .windowedBy(TimeWindows.ofSizeAndGrace(
                        Duration.ofSeconds(10), Duration.ofSeconds(1)))
                    .count()
                    .suppress(Suppressed.untilWindowCloses(
                        Suppressed.BufferConfig.unbounded()))
                    .toStream()
                    .to(output, Produced.with(
                        WindowedSerdes.timeWindowedSerdeFrom(String.class, 10_000),
                        Serdes.Long()));
            default -> throw new IllegalArgumentException(work);
        }
        return builder.build();
    }
}
