import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.protocol.Errors;

/**
 * Apache Kafka's own client in the roles `transact` and `pipe`, with the options of
 * `python -m tests.faults.clients`, and `--count`: so many clients in this one JVM.
 *
 * The next transaction begins as soon as the last one has ended, without a pause. Every step is
 * written down as Python's Recorder does it. SIGTERM: finish the transaction, and end.
 */
public class FaultClient {
    static final int ABORT_ONE_IN = 8;
    static final int RECORDS_MAX = 20;
    static final int TRIES_MAX = 3; // Of a call that timed out, which the client may repeat.
    static final String PADDING = ":" + ".".repeat(90);
    static final Map<String, String> OPTIONS = new HashMap<>();
    static volatile boolean isStopping = false;

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < arguments.length; i += 2) {
            OPTIONS.put(arguments[i].substring(2), arguments[i + 1]);
        }
        int count = Integer.parseInt(OPTIONS.get("count"));
        CountDownLatch ended = new CountDownLatch(count);
        History history = new History(Path.of(OPTIONS.get("history")));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            isStopping = true;
            try {
                ended.await();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }));
        for (int number = 1; number <= count; number++) {
            Client client = OPTIONS.get("role").equals("pipe")
                ? new Pipe(history, number) : new Transact(history, number);
            new Thread(() -> {
                try {
                    client.run();
                } finally {
                    ended.countDown();
                }
            }).start();
        }
    }

    /** The lines of all clients of this process; an operation's number is its own in the file. */
    static class History {
        private final PrintWriter file;
        private long count = 0;

        History(Path path) throws IOException {
            file = new PrintWriter(Files.newBufferedWriter(path, StandardCharsets.UTF_8));
        }

        synchronized long invoke(String process, String kind, String facts) {
            return begin(process, kind, System.nanoTime(), facts);
        }

        synchronized void end(String process, long op, String kind, String type, String facts) {
            write(process, op, type, kind, System.nanoTime(), facts);
        }

        synchronized void look(String process, String kind, long askedNs, String facts) {
            long op = begin(process, kind, askedNs, "{}");
            write(process, op, "ok", kind, System.nanoTime(), facts);
        }

        private long begin(String process, String kind, long atNs, String facts) {
            count += 1;
            write(process, count, "invoke", kind, atNs, facts);
            return count;
        }

        private void write(
            String process, long op, String type, String kind, long atNs, String facts
        ) {
            file.println("{\"process\": " + quoted(process) + ", \"op\": " + op + ", \"type\": \""
                + type + "\", \"kind\": \"" + kind + "\", \"at_ns\": " + atNs + ", \"facts\": "
                + facts + "}");
            file.flush();
            if (file.checkError()) {
                throw new UncheckedIOException(new IOException("the history cannot be written"));
            }
        }
    }

    static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else {
                out.append(c < ' ' ? ' ' : c);
            }
        }
        return out.append('"').toString();
    }

    static String json(Map<TopicPartition, Long> offsets) {
        List<String> pairs = new ArrayList<>();
        offsets.forEach((place, offset) -> pairs.add(quoted(place.toString()) + ": " + offset));
        return "{" + String.join(", ", pairs) + "}";
    }

    /** What both roles share: one transaction after the other, by one producer after the other. */
    abstract static class Client {
        final History history;
        final String process;
        final Random chance;
        long value;
        int restarts = 0;
        int transactions = 0;

        Client(History history, int number) {
            this.history = history;
            this.process = OPTIONS.get("process") + "/" + number;
            this.chance = new Random((OPTIONS.get("seed") + process).hashCode());
            this.value = Long.parseLong(OPTIONS.get("base")) + number * 10_000_000L;
        }

        /** Work with this producer until it is time to stop; KafkaException: it is of no use. */
        abstract void work(KafkaProducer<byte[], byte[]> producer);

        void run() {
            while (!isStopping) {
                restarts += 1;
                KafkaProducer<byte[], byte[]> producer = null;
                try {
                    producer = new KafkaProducer<>(producerSettings());
                    repeated("init", producer::initTransactions);
                    work(producer);
                } catch (KafkaException | IllegalStateException error) {
                    System.out.println(process + " begins anew: " + error);
                } finally {
                    if (producer != null) {
                        producer.close(Duration.ofSeconds(5));
                    }
                }
            }
        }

        Properties producerSettings() {
            Properties settings = new Properties();
            settings.put("bootstrap.servers", OPTIONS.get("bootstrap"));
            settings.put("client.id", process);
            settings.put("transactional.id", process);
            settings.put("transaction.timeout.ms", OPTIONS.get("transaction-ms"));
            settings.put("linger.ms", String.valueOf(chance.nextInt(2) * 5));
            settings.put("delivery.timeout.ms", OPTIONS.get("delivery-ms"));
            settings.put("key.serializer",
                "org.apache.kafka.common.serialization.ByteArraySerializer");
            settings.put("value.serializer",
                "org.apache.kafka.common.serialization.ByteArraySerializer");
            return settings;
        }

        /** Repeat a call that timed out, as its documentation asks for; all else is told. */
        void repeated(String what, Runnable call) {
            for (int tried = 1; ; tried++) {
                try {
                    call.run();
                    return;
                } catch (TimeoutException error) {
                    trouble(what, error);
                    if (tried == TRIES_MAX) {
                        throw error;
                    }
                } catch (KafkaException error) {
                    trouble(what, error);
                    throw error;
                }
            }
        }

        void trouble(String what, Throwable error) {
            Throwable cause = error;
            while (Errors.forException(cause) == Errors.UNKNOWN_SERVER_ERROR
                && cause.getCause() != null) {
                cause = cause.getCause();
            }
            Errors known = Errors.forException(cause);
            String name = known == Errors.UNKNOWN_SERVER_ERROR
                ? cause.getClass().getSimpleName() : known.name();
            history.look(process, "trouble", System.nanoTime(), "{\"during\": " + quoted(what)
                + ", \"error\": " + quoted(name) + ", \"text\": " + quoted(error.toString()) + "}");
        }

        String next() {
            transactions += 1;
            return process + "/" + transactions;
        }

        void send(KafkaProducer<byte[], byte[]> producer, TopicPartition place, String name) {
            value += 1;
            long op = history.invoke(process, "send", "{\"producer\": "
                + quoted(process + "/" + restarts) + ", \"partition\": " + quoted(place.toString())
                + ", \"value\": " + value + ", \"acks\": \"all\", \"is_idempotent\": true"
                + ", \"transaction\": " + quoted(name) + "}");
            byte[] payload = (value + PADDING).getBytes(StandardCharsets.US_ASCII);
            try {
                producer.send(
                    new ProducerRecord<>(place.topic(), place.partition(), null, payload),
                    (stored, error) -> {
                        if (error == null) {
                            history.end(process, op, "send", "ok",
                                "{\"offset\": " + stored.offset() + "}");
                        } else {
                            sendFailed(op, name, error);
                        }
                    });
            } catch (KafkaException error) {
                trouble("send of " + name, error);
                history.end(process, op, "send", "info", "{}");
                throw error;
            }
        }

        private void sendFailed(long op, String name, Exception error) {
            // An abort drops what was not sent yet, and says so to each.
            if (!(error instanceof KafkaException
                && "TransactionAbortedException".equals(error.getClass().getSimpleName()))) {
                trouble("send of " + name, error);
            }
            history.end(process, op, "send", "info", "{\"error\": " + quoted(error + "") + "}");
        }

        /** Commit or abort; false: it came to nothing, and was aborted after an error. */
        boolean end(
            KafkaProducer<byte[], byte[]> producer, String name, boolean isToCommit, String read
        ) {
            long op = history.invoke(process, "end", "{\"transaction\": " + quoted(name)
                + ", \"has_tried_commit\": " + isToCommit + read + "}");
            try {
                if (isToCommit) {
                    repeated("commit of " + name, producer::commitTransaction);
                } else {
                    repeated("abort of " + name, producer::abortTransaction);
                }
            } catch (KafkaException error) {
                history.end(process, op, "end", "info", "{}");
                if (!isToCommit) {
                    throw error;
                }
                repeated("abort after " + name, producer::abortTransaction);
                return false;
            }
            history.end(process, op, "end", isToCommit ? "ok" : "fail", "{}");
            return isToCommit;
        }

        List<TopicPartition> places(String topic) {
            List<TopicPartition> found = new ArrayList<>();
            for (int i = 0; i < Integer.parseInt(OPTIONS.get("partitions")); i++) {
                found.add(new TopicPartition(topic, i));
            }
            return found;
        }

        boolean isToCommit() {
            return chance.nextInt(ABORT_ONE_IN) != 0;
        }
    }

    /** Transactions over any partitions of both topics. */
    static class Transact extends Client {
        Transact(History history, int number) {
            super(history, number);
        }

        @Override
        void work(KafkaProducer<byte[], byte[]> producer) {
            List<TopicPartition> all = new ArrayList<>(places(OPTIONS.get("topic")));
            all.addAll(places(OPTIONS.get("output")));
            while (!isStopping) {
                String name = next();
                boolean isToCommit = isToCommit();
                producer.beginTransaction();
                try {
                    for (int left = 1 + chance.nextInt(8); left > 0; left--) {
                        send(producer, all.get(chance.nextInt(all.size())), name);
                    }
                    if (!isToCommit && chance.nextBoolean()) {
                        producer.flush();
                    }
                } catch (KafkaException error) {
                    isToCommit = false;
                }
                end(producer, name, isToCommit, "");
            }
        }
    }

    /** Reads committed records of a topic, writes as many to another, with the offsets. */
    static class Pipe extends Client {
        private final String group = OPTIONS.get("group");
        private int stretch = 0;

        Pipe(History history, int number) {
            super(history, number);
        }

        @Override
        void work(KafkaProducer<byte[], byte[]> producer) {
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(readerSettings())) {
                consumer.subscribe(List.of(OPTIONS.get("topic")), new ConsumerRebalanceListener() {
                    @Override
                    public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
                        // The next assignment says all that matters.
                    }

                    @Override
                    public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
                        assigned(Map.of());
                    }
                });
                while (!isStopping) {
                    long askedNs = System.nanoTime();
                    List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
                    consumer.poll(Duration.ofMillis(100)).forEach(records::add);
                    if (!records.isEmpty()) {
                        carry(producer, consumer, records, askedNs);
                    }
                }
            }
        }

        private Properties readerSettings() {
            Properties settings = new Properties();
            settings.put("bootstrap.servers", OPTIONS.get("bootstrap"));
            settings.put("client.id", process + "-reader");
            settings.put("group.id", group);
            settings.put("isolation.level", "read_committed");
            settings.put("enable.auto.commit", "false");
            settings.put("auto.offset.reset", "earliest");
            settings.put("max.poll.records", String.valueOf(RECORDS_MAX));
            settings.put("session.timeout.ms", "30000");
            settings.put("key.deserializer",
                "org.apache.kafka.common.serialization.ByteArrayDeserializer");
            settings.put("value.deserializer",
                "org.apache.kafka.common.serialization.ByteArrayDeserializer");
            return settings;
        }

        private void assigned(Map<TopicPartition, Long> starts) {
            stretch += 1;
            history.look(process, "assign", System.nanoTime(), "{\"consumer\": " + quoted(process)
                + ", \"stretch\": " + stretch + ", \"starts\": " + json(starts) + "}");
        }

        private void carry(
            KafkaProducer<byte[], byte[]> producer,
            KafkaConsumer<byte[], byte[]> consumer,
            List<ConsumerRecord<byte[], byte[]>> records,
            long askedNs
        ) {
            String name = next();
            Map<TopicPartition, Long> firsts = new HashMap<>();
            Map<TopicPartition, Long> positions = new HashMap<>();
            List<String> seen = new ArrayList<>();
            for (ConsumerRecord<byte[], byte[]> record : records) {
                TopicPartition place = new TopicPartition(record.topic(), record.partition());
                firsts.putIfAbsent(place, record.offset());
                positions.put(place, record.offset() + 1);
                String text = new String(record.value(), StandardCharsets.US_ASCII);
                seen.add("[" + quoted(place.toString()) + ", " + record.offset() + ", "
                    + text.substring(0, text.indexOf(':')) + "]");
            }
            history.look(process, "poll", askedNs, "{\"consumer\": " + quoted(process)
                + ", \"stretch\": " + stretch + ", \"records\": [" + String.join(", ", seen)
                + "], \"is_committed_only\": true, \"transaction\": " + quoted(name) + "}");
            boolean isToCommit = isToCommit();
            producer.beginTransaction();
            try {
                List<TopicPartition> outputs = places(OPTIONS.get("output"));
                for (int i = 0; i < records.size(); i++) {
                    send(producer, outputs.get(chance.nextInt(outputs.size())), name);
                }
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                positions.forEach((p, offset) -> offsets.put(p, new OffsetAndMetadata(offset)));
                repeated("offsets of " + name,
                    () -> producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata()));
            } catch (KafkaException error) {
                isToCommit = false;
            }
            String read = ", \"group\": " + quoted(group) + ", \"offsets\": " + json(positions);
            if (!end(producer, name, isToCommit, read)) {
                back(consumer, firsts);
            }
        }

        /** Read these again, unless they were given to another meanwhile. */
        private void back(
            KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> firsts
        ) {
            Map<TopicPartition, Long> kept = new TreeMap<>(
                (a, b) -> a.toString().compareTo(b.toString()));
            firsts.forEach((place, offset) -> {
                if (consumer.assignment().contains(place)) {
                    consumer.seek(place, offset);
                    kept.put(place, offset);
                }
            });
            assigned(kept);
        }
    }
}
