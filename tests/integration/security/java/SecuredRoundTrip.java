// The Java client at secured listeners: usage SecuredRoundTrip TOPIC FILE...; each file is a
// properties file of one client. Writes a record with each, reads it back, and prints what it read.
// One source for every release of the client from 0.10.2 on: what has changed is looked up by name.

import java.io.FileInputStream;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

public class SecuredRoundTrip {
    static final String STRINGS = "org.apache.kafka.common.serialization.String";

    public static void main(String[] arguments) throws Exception {
        for (int i = 1; i < arguments.length; i++) {
            Properties settings = new Properties();
            try (FileInputStream file = new FileInputStream(arguments[i])) {
                settings.load(file);
            }
            settings.put("key.serializer", STRINGS + "Serializer");
            settings.put("value.serializer", STRINGS + "Serializer");
            settings.put("key.deserializer", STRINGS + "Deserializer");
            settings.put("value.deserializer", STRINGS + "Deserializer");
            settings.put("group.id", "none");
            settings.put("enable.auto.commit", "false");
            settings.put("acks", "all");
            settings.put("enable.idempotence", "false");
            System.out.println(roundTrip(settings, arguments[0], "value " + i));
        }
    }

    static String roundTrip(Properties settings, String topic, String value) throws Exception {
        long offset;
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            offset = producer.send(new ProducerRecord<>(topic, 0, "k", value)).get().offset();
        }
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(Collections.singletonList(partition));
            consumer.seek(partition, offset);
            long giveUp = System.currentTimeMillis() + 60_000;
            while (System.currentTimeMillis() < giveUp) {
                for (ConsumerRecord<String, String> record : poll(consumer)) return record.value();
            }
        }
        throw new IllegalStateException("nothing was read");
    }

    @SuppressWarnings("unchecked")
    static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer)
        throws Exception {
        try {
            Method newer = KafkaConsumer.class.getMethod("poll", Duration.class);
            return (ConsumerRecords<String, String>) newer.invoke(consumer, Duration.ofMillis(500));
        } catch (NoSuchMethodException old) {
            Method older = KafkaConsumer.class.getMethod("poll", long.class);
            return (ConsumerRecords<String, String>) older.invoke(consumer, 500L);
        }
    }
}
