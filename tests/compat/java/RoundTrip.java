// The Java client against a broker: produce, read back by offset and by time, with assign and seek.
// usage: RoundTrip ADDRESS TOPIC CODEC COUNT START_MS STEP_MS; prints `offset<TAB>time<TAB>key<TAB>value`
// lines for every record, then again from offset 25 behind a line `tail`, then `timed OFFSET`.
// One source for every release of the client from 0.10.2 on: what has changed is looked up by name.

import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

public class RoundTrip {
    public static void main(String[] arguments) throws Exception {
        String address = arguments[0], topic = arguments[1], codec = arguments[2];
        int count = Integer.parseInt(arguments[3]);
        long start = Long.parseLong(arguments[4]), step = Long.parseLong(arguments[5]);
        if (!codec.equals("read")) {
            produce(address, topic, codec, count, start, step);
        }
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(consumerSettings(address))) {
            consumer.assign(Collections.singletonList(partition));
            print(consumer, partition, 0, count);
            System.out.println("tail");
            print(consumer, partition, 25, count);
            Map<TopicPartition, OffsetAndTimestamp> found = consumer.offsetsForTimes(
                Collections.singletonMap(partition, start + 30 * step - step / 2));
            System.out.println("timed " + found.get(partition).offset());
        }
    }

    static void produce(
        String address, String topic, String codec, int count, long start, long step
    ) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("acks", "all");
        settings.put("linger.ms", "50");
        settings.put("compression.type", codec);
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            List<Future<RecordMetadata>> answers = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                answers.add(producer.send(
                    new ProducerRecord<>(topic, 0, start + i * step, "key-" + i, "value " + i)));
            }
            for (int i = 0; i < count; i++) {
                long offset = answers.get(i).get().offset();
                if (offset != i) throw new IllegalStateException("offset " + offset + " for " + i);
            }
        }
    }

    static Properties consumerSettings(String address) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("enable.auto.commit", "false");
        settings.put("group.id", "none");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        return settings;
    }

    static void print(
        KafkaConsumer<String, String> consumer, TopicPartition partition, long from, int count
    ) throws Exception {
        consumer.seek(partition, from);
        long next = from, giveUp = System.currentTimeMillis() + 30_000;
        while (next < count) {
            if (System.currentTimeMillis() > giveUp) throw new IllegalStateException("only to " + next);
            for (ConsumerRecord<String, String> record : poll(consumer)) {
                System.out.println(record.offset() + "\t" + record.timestamp() + "\t"
                    + record.key() + "\t" + record.value());
                next = record.offset() + 1;
            }
        }
    }

    @SuppressWarnings("unchecked")
    static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer) throws Exception {
        try {
            Method modern = KafkaConsumer.class.getMethod("poll", Duration.class);
            return (ConsumerRecords<String, String>) modern.invoke(consumer, Duration.ofMillis(500));
        } catch (NoSuchMethodException absent) {
            Method old = KafkaConsumer.class.getMethod("poll", long.class);
            return (ConsumerRecords<String, String>) old.invoke(consumer, 500L);
        }
    }
}
