// What the Java client makes of a broker's refusals.
// usage: Refusals ADDRESS records TOPIC | Refusals ADDRESS shares TOPIC | Refusals ADDRESS acls TOPIC
// `records` sends three records in one batch, the second without a key, and prints
// `index<TAB>exception<TAB>message` for each of them.
// `shares` joins a share group and prints the exception that poll throws, or `silence`.
// `acls` asks as MirrorMaker does to carry access rules over: for all rules, for those of topics,
// and for two new ones. It prints `question<TAB>exception<TAB>message` for each.

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;

public class Refusals {
    public static void main(String[] arguments) throws Exception {
        String address = arguments[0], topic = arguments[2];
        if (arguments[1].equals("records")) {
            sendBadRecords(address, topic);
        } else if (arguments[1].equals("acls")) {
            carryRulesOver(address, topic);
        } else {
            joinShareGroup(address, topic);
        }
    }

    static Properties settings(String address) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        String serialization = "org.apache.kafka.common.serialization.";
        settings.put("key.serializer", serialization + "StringSerializer");
        settings.put("value.serializer", serialization + "StringSerializer");
        settings.put("key.deserializer", serialization + "StringDeserializer");
        settings.put("value.deserializer", serialization + "StringDeserializer");
        return settings;
    }

    static void sendBadRecords(String address, String topic) throws Exception {
        Properties settings = settings(address);
        settings.put("linger.ms", "5000");  // All three go into one batch; flush does not wait.
        settings.put("enable.idempotence", "false");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.partitionsFor(topic);
            List<Future<RecordMetadata>> answers = new ArrayList<>();
            for (String key : new String[] {"a", null, "c"}) {
                answers.add(producer.send(new ProducerRecord<>(topic, 0, key, "value")));
            }
            producer.flush();
            for (int i = 0; i < answers.size(); i++) {
                System.out.println(i + "\t" + outcome(answers.get(i)));
            }
        }
    }

    static String outcome(Future<?> answer) throws Exception {
        try {
            return answer.get() instanceof RecordMetadata sent ? "offset " + sent.offset() : "done";
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            return cause.getClass().getSimpleName() + "\t" + cause.getMessage();
        }
    }

    static void carryRulesOver(String address, String topic) throws Exception {
        AclBindingFilter ofTopics = new AclBindingFilter(
            new ResourcePatternFilter(ResourceType.TOPIC, null, PatternType.ANY),
            AccessControlEntryFilter.ANY);
        List<AclBinding> rules = List.of(rule(topic, "User:a"), rule(topic, "User:b"));
        try (Admin admin = Admin.create(settings(address))) {
            tell("describe all", admin.describeAcls(AclBindingFilter.ANY).values());
            tell("describe topics", admin.describeAcls(ofTopics).values());
            var made = admin.createAcls(rules).values();
            for (AclBinding rule : rules) {
                tell("create " + rule.entry().principal(), made.get(rule));
            }
        }
    }

    static AclBinding rule(String topic, String principal) {
        return new AclBinding(
            new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL),
            new AccessControlEntry(principal, "*", AclOperation.READ, AclPermissionType.ALLOW));
    }

    static void tell(String question, Future<?> answer) throws Exception {
        System.out.println(question + "\t" + outcome(answer));
    }

    static void joinShareGroup(String address, String topic) {
        Properties settings = settings(address);
        settings.put("group.id", "shares");
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            for (int i = 0; i < 20; i++) {
                consumer.poll(Duration.ofMillis(500));
            }
            System.out.println("silence");
        } catch (Exception error) {
            System.out.println(error.getClass().getSimpleName() + "\t" + error.getMessage());
        }
    }
}
