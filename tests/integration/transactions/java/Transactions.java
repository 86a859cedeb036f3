import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;

/** Commits, aborts, offsets and a fenced producer; prints what readers of committed records see. */
public class Transactions {
    private static final String STRINGS = "org.apache.kafka.common.serialization.StringSerializer";
    private static final String READ = "org.apache.kafka.common.serialization.StringDeserializer";

    public static void main(String[] arguments) throws Exception {
        String address = arguments[0];
        String topic = arguments[1];
        TopicPartition first = new TopicPartition(topic, 0);
        KafkaProducer<String, String> producer = producer(address);
        for (int round = 0; round < 6; round++) {
            producer.beginTransaction();
            for (int partition = 0; partition < 3; partition++) {
                producer.send(new ProducerRecord<>(topic, partition, null, round + "/" + partition));
            }
            producer.sendOffsetsToTransaction(
                Map.of(first, new OffsetAndMetadata(round)), new ConsumerGroupMetadata("readers"));
            if (round % 2 == 0) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
        producer.beginTransaction();
        producer.abortTransaction();
        fence(address, topic, producer);
        System.out.println("committed " + offset(address, first));
        for (int partition = 0; partition < 3; partition++) {
            System.out.println(String.join(" ", seen(address, new TopicPartition(topic, partition))));
        }
    }

    private static void fence(String address, String topic, KafkaProducer<String, String> old) {
        old.beginTransaction();
        old.send(new ProducerRecord<>(topic, 0, null, "zombie"));
        old.flush();
        KafkaProducer<String, String> successor = producer(address);
        try {
            old.commitTransaction();
            System.out.println("not fenced");
        } catch (ProducerFencedException | InvalidProducerEpochException error) {
            System.out.println("fenced");
        }
        successor.beginTransaction();
        successor.send(new ProducerRecord<>(topic, 0, null, "successor"));
        successor.commitTransaction();
        successor.close();
        old.close(Duration.ZERO);
    }

    private static KafkaProducer<String, String> producer(String address) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("transactional.id", "java");
        settings.put("key.serializer", STRINGS);
        settings.put("value.serializer", STRINGS);
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
        producer.initTransactions();
        return producer;
    }

    private static KafkaConsumer<String, String> consumer(String address) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("group.id", "readers");
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        settings.put("key.deserializer", READ);
        settings.put("value.deserializer", READ);
        return new KafkaConsumer<>(settings);
    }

    private static long offset(String address, TopicPartition partition) {
        try (KafkaConsumer<String, String> consumer = consumer(address)) {
            return consumer.committed(java.util.Set.of(partition)).get(partition).offset();
        }
    }

    private static List<String> seen(String address, TopicPartition partition) {
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer(address)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                    values.add(record.value());
                }
            }
        }
        return values;
    }
}
