// A member of a consumer group through the Java client, speaking either protocol.
// usage: NewMember ADDRESS GROUP PROTOCOL TOPIC COUNT; a TOPIC that begins with ^ is a pattern, which
// the broker matches. Prints `assigned PARTITION...` whenever that changes, and a line for each record,
// commits, and leaves after COUNT records.

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;

public class NewMember {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("group.protocol", arguments[2]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        String topic = arguments[3];
        int count = Integer.parseInt(arguments[4]);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            if (topic.startsWith("^")) {
                consumer.subscribe(new SubscriptionPattern(topic));
            } else {
                consumer.subscribe(List.of(topic));
            }
            String told = "";
            while (count > 0) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                String assigned = describe(consumer.assignment());
                if (!assigned.equals(told)) {
                    System.out.println(told = assigned);
                }
                for (ConsumerRecord<String, String> record : records) {
                    System.out.println(record.value());
                    count--;
                }
                if (!records.isEmpty()) {
                    consumer.commitSync();
                }
            }
        }
    }

    static String describe(Collection<TopicPartition> partitions) {
        TreeSet<String> names = new TreeSet<>();
        partitions.forEach(partition -> names.add(partition.toString()));
        return "assigned " + String.join(" ", names);
    }
}
