import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigValue;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.ConnectSchema;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Kafka's own transforms, predicates and converters, applied to cases of a file, one JSON each. */
public class ConnectJudge {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        StringBuilder out = new StringBuilder();
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            JsonNode asked = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer(asked, answer);
            } catch (Throwable error) {
                answer.removeAll();
                answer.put("error", error.getClass().getSimpleName());
                answer.put("message", String.valueOf(error.getMessage()));
            }
            out.append(JSON.writeValueAsString(answer)).append('\n');
        }
        System.out.print(out);
    }

    static void answer(JsonNode asked, ObjectNode answer) throws Exception {
        switch (asked.get("kind").textValue()) {
            case "transform": transform(asked, answer); break;
            case "predicate": predicate(asked, answer); break;
            case "from": from(asked, answer); break;
            case "to": to(asked, answer); break;
            case "header_from": headerFrom(asked, answer); break;
            case "header_to": headerTo(asked, answer); break;
            case "definition": definition(asked, answer); break;
            case "validate": validate(asked, answer); break;
            default: throw new IllegalStateException(asked.toString());
        }
    }

    static Map<String, String> config(JsonNode asked) {
        Map<String, String> config = new LinkedHashMap<>();
        asked.path("config").fields().forEachRemaining(
            e -> config.put(e.getKey(), e.getValue().isNull() ? null : e.getValue().asText()));
        return config;
    }

    static Object made(JsonNode asked) throws Exception {
        return Class.forName(asked.get("class").textValue()).getDeclaredConstructor().newInstance();
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static void transform(JsonNode asked, ObjectNode answer) throws Exception {
        Transformation transformation = (Transformation) made(asked);
        transformation.configure(config(asked));
        ConnectRecord given = record(asked.get("record"));
        ConnectRecord made = transformation.apply(given);
        answer.set("record", made == null ? JSON.nullNode() : recordNode(made));
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static void predicate(JsonNode asked, ObjectNode answer) throws Exception {
        Predicate predicate = (Predicate) made(asked);
        predicate.configure(config(asked));
        answer.put("holds", predicate.test(record(asked.get("record"))));
    }

    static void from(JsonNode asked, ObjectNode answer) throws Exception {
        Converter converter = (Converter) made(asked);
        converter.configure(config(asked), asked.path("is_key").asBoolean());
        Schema schema = schema(asked.get("schema"));
        bytes(answer, converter.fromConnectData("t", schema, value(asked.get("value"), schema)));
    }

    static void to(JsonNode asked, ObjectNode answer) throws Exception {
        Converter converter = (Converter) made(asked);
        converter.configure(config(asked), asked.path("is_key").asBoolean());
        pair(answer, converter.toConnectData("t", data(asked)));
    }

    static void headerFrom(JsonNode asked, ObjectNode answer) throws Exception {
        HeaderConverter converter = (HeaderConverter) made(asked);
        converter.configure(headerConfig(asked));
        Schema schema = schema(asked.get("schema"));
        bytes(answer, converter.fromConnectHeader("t", "h", schema, value(asked.get("value"), schema)));
    }

    static void headerTo(JsonNode asked, ObjectNode answer) throws Exception {
        HeaderConverter converter = (HeaderConverter) made(asked);
        converter.configure(headerConfig(asked));
        pair(answer, converter.toConnectHeader("t", "h", data(asked)));
    }

    static Map<String, String> headerConfig(JsonNode asked) {
        Map<String, String> config = config(asked);
        config.put("converter.type", "header");
        return config;
    }

    static byte[] data(JsonNode asked) throws Exception {
        JsonNode data = asked.get("data");
        return data == null || data.isNull() ? null : Base64.getDecoder().decode(data.textValue());
    }

    static void bytes(ObjectNode answer, byte[] made) {
        if (made == null) answer.putNull("data");
        else answer.put("data", Base64.getEncoder().encodeToString(made));
    }

    static void pair(ObjectNode answer, SchemaAndValue made) {
        answer.set("schema", schemaNode(made.schema()));
        answer.set("value", valueNode(made.value()));
    }

    static ConfigDef defined(JsonNode asked) throws Exception {
        Object made = made(asked);
        if (made instanceof Transformation) return ((Transformation<?>) made).config();
        if (made instanceof Predicate) return ((Predicate<?>) made).config();
        if (made instanceof Converter) return ((Converter) made).config();
        return ((HeaderConverter) made).config();
    }

    static void definition(JsonNode asked, ObjectNode answer) throws Exception {
        ArrayNode keys = answer.putArray("keys");
        for (ConfigDef.ConfigKey key : defined(asked).configKeys().values()) {
            ObjectNode one = keys.addObject();
            boolean required = ConfigDef.NO_DEFAULT_VALUE.equals(key.defaultValue);
            one.put("name", key.name).put("type", key.type.name()).put("required", required);
            one.put("default_value", required ? null : ConfigDef.convertToString(key.defaultValue, key.type));
            one.put("importance", key.importance.name()).put("group", key.group);
            one.put("width", key.width.name()).put("display_name", key.displayName);
            one.put("order", key.orderInGroup);
        }
    }

    static void validate(JsonNode asked, ObjectNode answer) throws Exception {
        ObjectNode errors = answer.putObject("errors");
        Map<String, ConfigValue> found = defined(asked).validateAll(config(asked));
        for (ConfigValue one : found.values()) {
            if (one.errorMessages().isEmpty()) continue;
            ArrayNode messages = errors.putArray(one.name());
            one.errorMessages().forEach(messages::add);
        }
    }

    static ConnectRecord<?> record(JsonNode node) throws Exception {
        Schema keys = schema(node.get("key_schema"));
        Schema values = schema(node.get("value_schema"));
        Object key = value(node.get("key"), keys);
        Object value = value(node.get("value"), values);
        Integer partition = node.path("partition").isNumber() ? node.get("partition").intValue() : null;
        Long timestamp = node.path("timestamp").isNumber() ? node.get("timestamp").longValue() : null;
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode one : node.path("headers")) {
            Schema schema = schema(one.get("schema"));
            headers.add(one.get("name").textValue(), value(one.get("value"), schema), schema);
        }
        String topic = node.get("topic").textValue();
        if (!node.path("offset").isNumber())
            return new SourceRecord(Map.of("p", 1), Map.of("o", 2), topic, partition, keys, key, values, value, timestamp, headers);
        return new SinkRecord(topic, partition == null ? 0 : partition, keys, key, values, value, node.get("offset").longValue(),
            timestamp, TimestampType.CREATE_TIME, headers);
    }

    static ObjectNode recordNode(ConnectRecord<?> record) {
        ObjectNode node = JSON.createObjectNode();
        node.put("topic", record.topic()).put("partition", record.kafkaPartition()).put("timestamp", record.timestamp());
        node.set("key_schema", schemaNode(record.keySchema()));
        node.set("key", valueNode(record.key()));
        node.set("value_schema", schemaNode(record.valueSchema()));
        node.set("value", valueNode(record.value()));
        ArrayNode headers = node.putArray("headers");
        for (Header one : record.headers()) {
            ObjectNode header = headers.addObject();
            header.put("name", one.key());
            header.set("schema", schemaNode(one.schema()));
            header.set("value", valueNode(one.value()));
        }
        return node;
    }

    static Schema schema(JsonNode node) throws Exception {
        if (node == null || node.isNull()) return null;
        Schema.Type type = Schema.Type.valueOf(node.get("type").textValue());
        Map<String, String> parameters = null;
        if (node.path("parameters").size() > 0) {
            parameters = new LinkedHashMap<>();
            for (Map.Entry<String, JsonNode> one : node.get("parameters").properties())
                parameters.put(one.getKey(), one.getValue().textValue());
        }
        List<Field> fields = null;
        if (type == Schema.Type.STRUCT) {
            fields = new ArrayList<>();
            for (JsonNode one : node.path("fields"))
                fields.add(new Field(one.get("name").textValue(), fields.size(), schema(one.get("schema"))));
        }
        Schema keys = type == Schema.Type.MAP ? schema(node.get("keys")) : null;
        Schema values = type == Schema.Type.MAP || type == Schema.Type.ARRAY ? schema(node.get("values")) : null;
        boolean optional = node.path("optional").asBoolean();
        String name = node.path("name").textValue();
        Integer version = node.path("version").isNumber() ? node.get("version").intValue() : null;
        String doc = node.path("doc").textValue();
        ConnectSchema plain = new ConnectSchema(type, optional, null, name, version, doc, parameters, fields, keys, values);
        if (!node.hasNonNull("default")) return plain;
        Object byDefault = value(node.get("default"), plain);
        return new ConnectSchema(type, optional, byDefault, name, version, doc, parameters, fields, keys, values);
    }

    static JsonNode schemaNode(Schema schema) {
        if (schema == null) return JSON.nullNode();
        ObjectNode node = JSON.createObjectNode();
        node.put("type", schema.type().name());
        if (schema.isOptional()) node.put("optional", true);
        if (schema.name() != null) node.put("name", schema.name());
        if (schema.version() != null) node.put("version", schema.version());
        if (schema.doc() != null) node.put("doc", schema.doc());
        if (schema.parameters() != null && !schema.parameters().isEmpty()) {
            ObjectNode parameters = node.putObject("parameters");
            schema.parameters().forEach(parameters::put);
        }
        if (schema.defaultValue() != null) node.set("default", valueNode(schema.defaultValue()));
        if (schema.type() == Schema.Type.STRUCT) {
            ArrayNode fields = node.putArray("fields");
            for (Field one : schema.fields())
                fields.addObject().put("name", one.name()).set("schema", schemaNode(one.schema()));
        }
        if (schema.type() == Schema.Type.MAP) node.set("keys", schemaNode(schema.keySchema()));
        if (schema.type() == Schema.Type.MAP || schema.type() == Schema.Type.ARRAY)
            node.set("values", schemaNode(schema.valueSchema()));
        return node;
    }

    /** A value is null, or a pair of a tag and its content; numbers get the width of their schema. */
    static Object value(JsonNode node, Schema schema) throws Exception {
        if (node == null || node.isNull()) return null;
        JsonNode content = node.get(1);
        Schema.Type type = schema == null ? null : schema.type();
        switch (node.get(0).textValue()) {
            case "bool": return content.booleanValue();
            case "int":
                long number = Long.parseLong(content.textValue());
                if (type == Schema.Type.INT8) return (byte) number;
                if (type == Schema.Type.INT16) return (short) number;
                if (type == Schema.Type.INT32) return (int) number;
                return number;
            case "float":
                double real = Double.parseDouble(content.textValue());
                if (type == Schema.Type.FLOAT32) return (float) real;
                return real;
            case "string": return content.textValue();
            case "bytes": return Base64.getDecoder().decode(content.textValue());
            case "date": return new java.util.Date(content.longValue());
            case "decimal": return new BigDecimal(content.textValue());
            case "array":
                List<Object> items = new ArrayList<>();
                for (JsonNode one : content) items.add(value(one, schema == null ? null : schema.valueSchema()));
                return items;
            case "map":
                Map<Object, Object> map = new LinkedHashMap<>();
                for (JsonNode one : content)
                    map.put(value(one.get(0), schema == null ? null : schema.keySchema()),
                        value(one.get(1), schema == null ? null : schema.valueSchema()));
                return map;
            case "struct":
                Struct struct = new Struct(schema);
                for (JsonNode one : content)
                    struct.put(one.get(0).textValue(), value(one.get(1), schema.field(one.get(0).textValue()).schema()));
                return struct;
            default: throw new IllegalStateException(node.toString());
        }
    }

    static JsonNode valueNode(Object value) {
        if (value == null) return JSON.nullNode();
        if (value instanceof Boolean) return JSON.createArrayNode().add("bool").add((Boolean) value);
        if (value instanceof Float || value instanceof Double)
            return JSON.createArrayNode().add("float").add(Double.toString(((Number) value).doubleValue()));
        if (value instanceof BigDecimal) return JSON.createArrayNode().add("decimal").add(value.toString());
        if (value instanceof Number) return JSON.createArrayNode().add("int").add(value.toString());
        if (value instanceof String) return JSON.createArrayNode().add("string").add((String) value);
        if (value instanceof java.util.Date)
            return JSON.createArrayNode().add("date").add(((java.util.Date) value).getTime());
        if (value instanceof ByteBuffer) {
            ByteBuffer buffer = ((ByteBuffer) value).duplicate();
            byte[] copy = new byte[buffer.remaining()];
            buffer.get(copy);
            return valueNode(copy);
        }
        if (value instanceof byte[])
            return JSON.createArrayNode().add("bytes").add(Base64.getEncoder().encodeToString((byte[]) value));
        ArrayNode content = JSON.createArrayNode();
        if (value instanceof List) {
            for (Object one : (List<?>) value) content.add(valueNode(one));
            return JSON.createArrayNode().add("array").add(content);
        }
        if (value instanceof Map) {
            for (Map.Entry<?, ?> one : ((Map<?, ?>) value).entrySet())
                content.addArray().add(valueNode(one.getKey())).add(valueNode(one.getValue()));
            return JSON.createArrayNode().add("map").add(content);
        }
        Struct struct = (Struct) value;
        for (Field one : struct.schema().fields())
            content.addArray().add(one.name()).add(valueNode(struct.getWithoutDefault(one.name())));
        return JSON.createArrayNode().add("struct").add(content);
    }
}
