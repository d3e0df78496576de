package test;

import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.ConnectorTransactionBoundaries;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.kafka.connect.source.SourceConnectorContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Returns numbers, in batches of ten; a key of the config says what else happens. */
public class ScriptedSource extends SourceConnector {
    private static final Logger LOG = LoggerFactory.getLogger(ScriptedSource.class);
    private Map<String, String> config;

    @Override public void start(Map<String, String> config) {
        this.config = config;
        if (config.containsKey("refuse")) throw new org.apache.kafka.connect.errors.ConnectException("no such database");
        if (config.containsKey("exit")) System.exit(3);
        if (config.containsKey("reconfigure")) context().requestTaskReconfiguration();
        if (config.containsKey("raise")) new Thread(() -> context().raiseError(new IllegalStateException("from a thread"))).start();
    }
    @Override public Class<? extends Task> taskClass() { return ScriptedTask.class; }
    @Override public List<Map<String, String>> taskConfigs(int max) {
        if (config.containsKey("hang")) while (true) try { Thread.sleep(1000); } catch (InterruptedException ignored) { }
        if (!config.containsKey("read")) return List.of(config);
        Map<String, String> read = new java.util.HashMap<>(config);
        OffsetStorageReader reader = ((SourceConnectorContext) context()).offsetStorageReader();
        read.put("read", reader.offset(Map.of("s", "1")) + " " + reader.offset(Map.of("s", "2")));
        return List.of(read);
    }
    @Override public void stop() {}
    @Override public ConfigDef config() {
        return new ConfigDef().define("limit", ConfigDef.Type.INT, 100, ConfigDef.Range.between(1, 1000000), ConfigDef.Importance.HIGH, "How many.");
    }
    @Override public String version() { return "1.2.3"; }
    @Override public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> config) { return ExactlyOnceSupport.SUPPORTED; }
    @Override public ConnectorTransactionBoundaries canDefineTransactionBoundaries(Map<String, String> config) {
        return ConnectorTransactionBoundaries.SUPPORTED;
    }
    @Override public boolean alterOffsets(Map<String, String> config, Map<Map<String, ?>, Map<String, ?>> offsets) {
        offsets.values().forEach(each -> { if (each != null && !(each.get("n") instanceof Long)) throw new IllegalArgumentException("n: " + each); });
        return true;
    }

    /** Overrides neither {@code commit} nor {@code commitRecord}, so that it may be polled ahead. */
    public static class PlainTask extends SourceTask {
        private final Map<String, String> source = Map.of("s", "1");
        private Map<String, String> config;
        private long next;
        private final List<byte[]> heap = new ArrayList<>();
        private volatile boolean flooding;

        @Override public String version() { return "1.2.3"; }
        @Override public void start(Map<String, String> config) {
            this.config = config;
            LOG.debug("the task starts at level DEBUG");
            PluginMetrics metrics = context.pluginMetrics();
            metrics.addMetric(metrics.metricName("next", "The next number.", new LinkedHashMap<>(Map.of("s", "1"))), (Gauge<Long>) (c, now) -> next);
            Map<String, Object> stored = context.offsetStorageReader().offset(source);
            next = stored == null ? 0 : (Long) stored.get("n") + 1;
        }
        @Override public List<SourceRecord> poll() throws InterruptedException {
            long limit = Long.parseLong(config.getOrDefault("limit", "100"));
            if (next >= limit) {
                return act(config.getOrDefault("then", ""));
            }
            if (config.containsKey("slow")) Thread.sleep(Long.parseLong(config.get("slow")));
            List<SourceRecord> records = new ArrayList<>();
            for (int i = 0; i < 10 && next < limit; i++, next++) records.add(record(next));
            if (config.containsKey("flood") && !flooding) flood();
            if (config.containsKey("abort")) context.transactionContext().abortTransaction(records.get(3));
            if (config.containsKey("commit")) context.transactionContext().commitTransaction();
            return records;
        }
        private SourceRecord record(long n) {
            SourceRecord record = new SourceRecord(source, Map.of("n", n), config.get("topic"), null, Schema.STRING_SCHEMA, "k" + n, Schema.STRING_SCHEMA, value(n), 1000 + n);
            record.headers().addLong("n", n).addString("é", "ü");
            return record;
        }
        private String value(long n) { return config.getOrDefault("large", "").equals("" + n) ? "v" + n + "x".repeat(5000) : "v" + n; }
        /** Writes as many lines of log as it can, until the task stops. */
        private void flood() {
            flooding = true;
            Thread thread = new Thread(() -> { for (long n = 0; flooding; n++) LOG.warn("line {} of very many", n); });
            thread.setDaemon(true);
            thread.start();
        }
        private List<SourceRecord> act(String what) throws InterruptedException {
            switch (what) {
                case "null" -> { return Arrays.asList(record(next), null); }
                case "schema" -> { return List.of(new SourceRecord(source, Map.of("n", next), config.get("topic"), Schema.INT32_SCHEMA, "text")); }
                case "missing" -> throw new NoClassDefFoundError("com/example/Driver");
                case "hang" -> { while (true) try { Thread.sleep(1000); } catch (InterruptedException ignored) { } }
                case "wait" -> Thread.sleep(600_000);
                case "flag" -> { // as many plugins do
                    try { Thread.sleep(600_000); } catch (InterruptedException wanted) { Thread.currentThread().interrupt(); }
                    return List.of(record(next++));
                }
                case "crash" -> crash();
                case "exit" -> System.exit(7);
                case "oom" -> { while (true) heap.add(new byte[1 << 20]); }
                case "overflow" -> overflow(0);
                case "throw" -> throw new org.apache.kafka.connect.errors.ConnectException("The database is gone", new RuntimeException("really"));
                default -> { }
            }
            Thread.sleep(50);
            return null;
        }
        private int overflow(int n) { return overflow(n + 1) + 1; }
        private static void crash() {
            try {
                Field field = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
                field.setAccessible(true);
                Object unsafe = field.get(null);
                unsafe.getClass().getMethod("putAddress", long.class, long.class).invoke(unsafe, 0L, 0L);
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }
        @Override public void stop() { flooding = false; note("stop"); }
        final synchronized void note(String line) { // commit and commitRecord have threads of their own
            if (!config.containsKey("log")) return;
            try {
                Files.writeString(Path.of(config.get("log")), line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
        }
    }

    public static class ScriptedTask extends PlainTask {
        @Override public void commit() { note("commit"); }
        @Override public void commitRecord(SourceRecord record, RecordMetadata metadata) {
            note(record.value() + " " + (metadata == null ? "none" : metadata.partition() + " " + metadata.offset()));
        }
    }
}
