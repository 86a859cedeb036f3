package penstock;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.Config;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.ConfigValue;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.connector.ConnectorContext;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceConnectorContext;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.kafka.connect.source.SourceTaskContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/**
 * One Java connector or one of its tasks, as the Python side calls it.
 *
 * <p>Janino compiles it when the JVM has started, so it is written without lambdas and with few
 * generics. Values cross as bytes, in the form that wire.py describes. The contexts that connectors
 * are given are proxies: an interface that a later Kafka has made longer is still implemented.
 */
public class Bridge implements InvocationHandler, Runnable {
    private static final int SCHEMAS_MAX = 1000;

    private final Class kind;
    private SourceConnector connector;
    private SourceTask task;
    private Map config = new HashMap();
    private Map offsets = new HashMap();
    private final ArrayBlockingQueue events = new ArrayBlockingQueue(100);

    private final Semaphore wanted = new Semaphore(0);
    private final ArrayBlockingQueue polled = new ArrayBlockingQueue(1);
    private boolean isAsked = false;
    private volatile boolean isStopping = false;
    private Thread poller;
    private List batch;
    private int at;
    private boolean listens;
    private final ArrayDeque pending = new ArrayDeque();
    private final IdentityHashMap schemas = new IdentityHashMap();

    public Bridge(String name) throws Exception {
        kind = Class.forName(name, true, Thread.currentThread().getContextClassLoader());
        if (!SourceConnector.class.isAssignableFrom(kind)) {
            throw new ConnectException(name + " is no source connector; sinks are not run here");
        }
    }

    /** How an error is told apart: retriable, data, config, or any other. */
    public static String kindOf(Throwable error) {
        if (error instanceof RetriableException) return "retriable";
        if (error instanceof DataException) return "data";
        if (error instanceof ConfigException) return "config";
        return "other";
    }

    public static String traceOf(Throwable error) {
        StringWriter text = new StringWriter();
        error.printStackTrace(new PrintWriter(text));
        return text.toString();
    }

    // Connectors ---------------------------------------------------------------------------------

    private SourceConnector made() throws Exception {
        return (SourceConnector) kind.getDeclaredConstructor(new Class[0]).newInstance(new Object[0]);
    }

    public byte[] definitions() throws Exception {
        return bytesOf(entriesOf(made().config()));
    }

    private List entriesOf(ConfigDef def) {
        List found = new ArrayList();
        Iterator keys = def.configKeys().values().iterator();
        while (keys.hasNext()) {
            ConfigDef.ConfigKey key = (ConfigDef.ConfigKey) keys.next();
            if (key.internalConfig) continue;
            Map one = new LinkedHashMap();
            one.put("name", key.name);
            one.put("type", key.type.toString());
            one.put("required", Boolean.valueOf(!key.hasDefault()));
            one.put("default", key.hasDefault() ? textOf(key.defaultValue, key.type) : null);
            one.put("importance", key.importance.toString());
            one.put("doc", key.documentation);
            one.put("group", key.group);
            one.put("order", Integer.valueOf(key.orderInGroup));
            one.put("width", key.width.toString());
            one.put("display", key.displayName);
            one.put("dependents", new ArrayList(key.dependents));
            found.add(one);
        }
        return found;
    }

    private static String textOf(Object value, ConfigDef.Type type) {
        return value == null ? null : ConfigDef.convertToString(value, type);
    }

    /** The settings with what is wrong about them, and the definitions. */
    public byte[] validate(byte[] given) throws Exception {
        SourceConnector one = made();
        Config checked = one.validate((Map) valueOf(given));
        Map keys = one.config().configKeys();
        List values = new ArrayList();
        Iterator each = checked.configValues().iterator();
        while (each.hasNext()) {
            ConfigValue value = (ConfigValue) each.next();
            ConfigDef.ConfigKey key = (ConfigDef.ConfigKey) keys.get(value.name());
            ConfigDef.Type type = key == null ? ConfigDef.Type.STRING : key.type;
            List recommended = new ArrayList();
            Iterator proposals = value.recommendedValues().iterator();
            while (proposals.hasNext()) recommended.add(textOf(proposals.next(), type));
            Map told = new LinkedHashMap();
            told.put("name", value.name());
            told.put("value", textOf(value.value(), type));
            told.put("recommended", recommended);
            told.put("errors", new ArrayList(value.errorMessages()));
            told.put("visible", Boolean.valueOf(value.visible()));
            values.add(told);
        }
        List both = new ArrayList();
        both.add(entriesOf(one.config()));
        both.add(values);
        return bytesOf(both);
    }

    public String exactlyOnce(byte[] given) throws Exception {
        Object found = made().exactlyOnceSupport((Map) valueOf(given));
        return found == null ? "UNSUPPORTED" : found.toString();
    }

    public boolean alterOffsets(byte[] given, byte[] altered) throws Exception {
        return made().alterOffsets((Map) valueOf(given), pairsOf(altered));
    }

    public void startConnector(byte[] given) throws Exception {
        config = (Map) valueOf(given);
        connector = made();
        connector.initialize((ConnectorContext) proxied(SourceConnectorContext.class));
        connector.start(config);
    }

    public byte[] taskConfigs(int tasksMax) throws Exception {
        return bytesOf(connector.taskConfigs(tasksMax));
    }

    public void stopConnector() {
        isStopping = true;
        if (connector != null) connector.stop();
        events.offer("");
    }

    /** What the connector has asked for: "reconfigure", a trace, or null after a while. */
    public String event(long waitMs) throws Exception {
        return (String) events.poll(waitMs, TimeUnit.MILLISECONDS);
    }

    // Contexts -----------------------------------------------------------------------------------

    private Object proxied(Class wanted) {
        return Proxy.newProxyInstance(wanted.getClassLoader(), new Class[] {wanted}, this);
    }

    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        String name = method.getName();
        if (name.equals("configs")) return config;
        if (name.equals("offsetStorageReader") && task != null) {
            return proxied(OffsetStorageReader.class);
        }
        if (name.equals("offset")) return offsets.get(plain((Map) arguments[0]));
        if (name.equals("offsets")) {
            Map found = new HashMap();
            Iterator each = ((Collection) arguments[0]).iterator();
            while (each.hasNext()) {
                Map partition = (Map) each.next();
                found.put(partition, offsets.get(plain(partition)));
            }
            return found;
        }
        if (name.equals("transactionContext")) return null;
        if (name.equals("requestTaskReconfiguration")) {
            events.offer("reconfigure");
            return null;
        }
        if (name.equals("raiseError")) {
            events.offer(traceOf((Throwable) arguments[0]));
            return null;
        }
        if (name.equals("hashCode")) return Integer.valueOf(System.identityHashCode(proxy));
        if (name.equals("equals")) return Boolean.valueOf(proxy == arguments[0]);
        if (name.equals("toString")) return "Bridge of " + kind.getName();
        throw new ConnectException("A Java connector cannot ask for " + name + " here");
    }

    /** With numbers as JSON brings them back. */
    private static Map plain(Map given) {
        Map found = new HashMap();
        Iterator each = given.entrySet().iterator();
        while (each.hasNext()) {
            Map.Entry entry = (Map.Entry) each.next();
            Object value = entry.getValue();
            if (value instanceof Integer || value instanceof Short || value instanceof Byte) {
                value = Long.valueOf(((Number) value).longValue());
            } else if (value instanceof Float) {
                value = Double.valueOf(((Number) value).doubleValue());
            }
            found.put(entry.getKey(), value);
        }
        return found;
    }

    // Tasks --------------------------------------------------------------------------------------

    /** Whether the task wants to hear of single records. */
    public boolean startTask(byte[] given, byte[] known) throws Exception {
        config = (Map) valueOf(given);
        offsets = pairsOf(known);
        Class own = made().taskClass();
        task = (SourceTask) own.getDeclaredConstructor(new Class[0]).newInstance(new Object[0]);
        listens = hears(own);
        task.initialize((SourceTaskContext) proxied(SourceTaskContext.class));
        task.start(config);
        poller = new Thread(this, "poller");
        poller.setDaemon(true);
        poller.start();
        return listens;
    }

    private static boolean hears(Class own) {
        Method[] methods = own.getMethods();
        for (int i = 0; i < methods.length; i++) {
            boolean isOwn = methods[i].getDeclaringClass() != SourceTask.class;
            if (methods[i].getName().equals("commitRecord") && isOwn) return true;
        }
        return false;
    }

    /** Polls when it is asked to: a task may wait in poll for as long as it likes. */
    public void run() {
        try {
            while (!isStopping) {
                wanted.acquire();
                if (isStopping) return;
                Object found;
                try {
                    found = task.poll();
                    if (found == null) found = new ArrayList();
                } catch (Throwable error) {
                    found = error;
                }
                polled.put(found);
            }
        } catch (InterruptedException stopped) {
            return;
        }
    }

    /** Records of a poll, about so many bytes of them; the rest comes with the next calls. */
    public byte[] poll(long waitMs, int bytesMax) throws Throwable {
        if (batch == null) {
            if (!isAsked) {
                isAsked = true;
                wanted.release();
            }
            Object found = polled.poll(waitMs, TimeUnit.MILLISECONDS);
            if (found == null) return null;
            isAsked = false;
            if (found instanceof Throwable) throw (Throwable) found;
            if (((List) found).isEmpty()) return null;
            batch = (List) found;
            at = 0;
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        boolean isReset = schemas.size() > SCHEMAS_MAX;
        if (isReset) schemas.clear();
        out.writeBoolean(isReset);
        while (at < batch.size() && out.size() < bytesMax) {
            SourceRecord record = (SourceRecord) batch.get(at++);
            if (listens) pending.add(record);
            out.writeBoolean(true);
            writeRecord(out, record);
        }
        out.writeBoolean(false);
        if (at == batch.size()) batch = null;
        return bytes.toByteArray();
    }

    /** The oldest records that were polled are in their topics: partition and offset of each. */
    public void confirm(byte[] places) throws Exception {
        Iterator each = ((List) valueOf(places)).iterator();
        while (each.hasNext()) {
            List place = (List) each.next();
            SourceRecord record = (SourceRecord) pending.poll();
            RecordMetadata stored = null;
            if (place.get(0) != null) {
                int partition = ((Long) place.get(0)).intValue();
                long offset = ((Long) place.get(1)).longValue();
                TopicPartition where = new TopicPartition(record.topic(), partition);
                long time = record.timestamp() == null ? -1L : record.timestamp().longValue();
                stored = new RecordMetadata(where, offset, 0, time, -1, -1);
            }
            task.commitRecord(record, stored);
        }
    }

    public void commit() throws Exception {
        task.commit();
    }

    public void stopTask() throws Exception {
        isStopping = true;
        wanted.release();
        if (task != null) task.stop();
        if (poller != null) {
            polled.clear();
            poller.join(2000L);
        }
    }

    // Bytes --------------------------------------------------------------------------------------

    private void writeRecord(DataOutputStream out, SourceRecord record) throws IOException {
        write(out, record.sourcePartition());
        write(out, record.sourceOffset());
        write(out, record.topic());
        write(out, record.kafkaPartition());
        write(out, record.timestamp());
        writeSchema(out, record.keySchema());
        write(out, record.key());
        writeSchema(out, record.valueSchema());
        write(out, record.value());
        out.writeInt(record.headers().size());
        Iterator each = record.headers().iterator();
        while (each.hasNext()) {
            Header header = (Header) each.next();
            write(out, header.key());
            writeSchema(out, header.schema());
            write(out, header.value());
        }
    }

    /** A number that was given before, or the next one and what it stands for; -1: no schema. */
    private void writeSchema(DataOutputStream out, Schema schema) throws IOException {
        if (schema == null) {
            out.writeInt(-1);
            return;
        }
        Integer known = (Integer) schemas.get(schema);
        if (known != null) {
            out.writeInt(known.intValue());
            return;
        }
        out.writeInt(-2);
        write(out, schema.type().toString());
        out.writeBoolean(schema.isOptional());
        write(out, schema.name());
        write(out, schema.version());
        write(out, schema.doc());
        write(out, schema.parameters());
        if (schema.type() == Schema.Type.STRUCT) {
            out.writeInt(schema.fields().size());
            Iterator each = schema.fields().iterator();
            while (each.hasNext()) {
                Field field = (Field) each.next();
                write(out, field.name());
                writeSchema(out, field.schema());
            }
        }
        if (schema.type() == Schema.Type.MAP) writeSchema(out, schema.keySchema());
        boolean hasValues = schema.type() == Schema.Type.MAP || schema.type() == Schema.Type.ARRAY;
        if (hasValues) writeSchema(out, schema.valueSchema());
        // A default of a struct would need the schema that is only just being told.
        write(out, schema.type() == Schema.Type.STRUCT ? null : schema.defaultValue());
        schemas.put(schema, Integer.valueOf(schemas.size()));
    }

    private static byte[] bytesOf(Object value) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        new Bridge.Plain().write(new DataOutputStream(bytes), value);
        return bytes.toByteArray();
    }

    /** Writes values that have no schemas in them. */
    private static class Plain extends Writer {
        void writeStruct(DataOutputStream out, Struct struct) throws IOException {
            throw new DataException("a struct where none can be");
        }
    }

    private class Whole extends Writer {
        void writeStruct(DataOutputStream out, Struct struct) throws IOException {
            writeSchema(out, struct.schema());
            Iterator each = struct.schema().fields().iterator();
            while (each.hasNext()) write(out, struct.getWithoutDefault(((Field) each.next()).name()));
        }
    }

    private final Writer whole = new Whole();

    private void write(DataOutputStream out, Object value) throws IOException {
        whole.write(out, value);
    }

    private abstract static class Writer {
        abstract void writeStruct(DataOutputStream out, Struct struct) throws IOException;

        void write(DataOutputStream out, Object value) throws IOException {
            if (value == null) {
                out.writeByte('0');
            } else if (value instanceof Boolean) {
                out.writeByte(((Boolean) value).booleanValue() ? 'T' : 'F');
            } else if (value instanceof Float || value instanceof Double) {
                out.writeByte('d');
                out.writeDouble(((Number) value).doubleValue());
            } else if (value instanceof BigDecimal) {
                out.writeByte('n');
                out.writeInt(((BigDecimal) value).scale());
                writeBytes(out, ((BigDecimal) value).unscaledValue().toByteArray());
            } else if (value instanceof Byte || value instanceof Short
                    || value instanceof Integer || value instanceof Long) {
                out.writeByte('i');
                out.writeLong(((Number) value).longValue());
            } else if (value instanceof byte[]) {
                out.writeByte('b');
                writeBytes(out, (byte[]) value);
            } else if (value instanceof ByteBuffer) {
                ByteBuffer left = (ByteBuffer) ((ByteBuffer) value).duplicate();
                byte[] bytes = new byte[left.remaining()];
                left.get(bytes);
                out.writeByte('b');
                writeBytes(out, bytes);
            } else if (value instanceof java.util.Date) {
                out.writeByte('t');
                out.writeLong(((java.util.Date) value).getTime());
            } else if (value instanceof List) {
                out.writeByte('l');
                out.writeInt(((List) value).size());
                Iterator each = ((List) value).iterator();
                while (each.hasNext()) write(out, each.next());
            } else if (value instanceof Map) {
                out.writeByte('m');
                out.writeInt(((Map) value).size());
                Iterator each = ((Map) value).entrySet().iterator();
                while (each.hasNext()) {
                    Map.Entry entry = (Map.Entry) each.next();
                    write(out, entry.getKey());
                    write(out, entry.getValue());
                }
            } else if (value instanceof Struct) {
                out.writeByte('x');
                writeStruct(out, (Struct) value);
            } else if (value instanceof CharSequence) {
                out.writeByte('s');
                writeBytes(out, value.toString().getBytes("UTF-8"));
            } else {
                throw new DataException("a value of " + value.getClass().getName());
            }
        }

        private static void writeBytes(DataOutputStream out, byte[] bytes) throws IOException {
            out.writeInt(bytes.length);
            out.write(bytes, 0, bytes.length);
        }
    }

    private static Map pairsOf(byte[] given) throws IOException {
        Map found = new HashMap();
        Iterator each = ((List) valueOf(given)).iterator();
        while (each.hasNext()) {
            List pair = (List) each.next();
            found.put(pair.get(0), pair.get(1));
        }
        return found;
    }

    private static Object valueOf(byte[] given) throws IOException {
        return read(new DataInputStream(new ByteArrayInputStream(given)));
    }

    private static Object read(DataInputStream in) throws IOException {
        int tag = in.readByte();
        if (tag == '0') return null;
        if (tag == 'T') return Boolean.TRUE;
        if (tag == 'F') return Boolean.FALSE;
        if (tag == 'd') return Double.valueOf(in.readDouble());
        if (tag == 'i') return Long.valueOf(in.readLong());
        int count = in.readInt();
        if (tag == 's') {
            byte[] bytes = new byte[count];
            in.readFully(bytes);
            return new String(bytes, "UTF-8");
        }
        if (tag == 'l') {
            List found = new ArrayList();
            for (int i = 0; i < count; i++) found.add(read(in));
            return found;
        }
        if (tag == 'm') {
            Map found = new HashMap();
            for (int i = 0; i < count; i++) {
                Object key = read(in);
                found.put(key, read(in));
            }
            return found;
        }
        throw new IOException("tag " + tag);
    }
}
