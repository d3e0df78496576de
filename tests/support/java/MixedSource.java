package test;
import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.source.*;
/** Returns 1,000 records of all types, with and without schemas, keys, headers and timestamps. */
public class MixedSource extends SourceConnector {
    private Map<String, String> config;
    @Override public void start(Map<String, String> config) { this.config = config; }
    @Override public Class<? extends Task> taskClass() { return MixedTask.class; }
    @Override public List<Map<String, String>> taskConfigs(int max) { return List.of(config); }
    @Override public void stop() {}
    @Override public ConfigDef config() { return new ConfigDef(); }
    @Override public String version() { return "1"; }
    public static class MixedTask extends SourceTask {
        private static final Schema NESTED = SchemaBuilder.struct().name("nested").optional().field("text", Schema.STRING_SCHEMA).build();
        private static final Schema SCHEMA = SchemaBuilder.struct().name("mixed").version(3).field("id", Schema.INT64_SCHEMA)
            .field("small", Schema.OPTIONAL_INT8_SCHEMA).field("real", Schema.FLOAT64_SCHEMA).field("amount", Decimal.schema(2))
            .field("at", Timestamp.SCHEMA).field("bytes", Schema.OPTIONAL_BYTES_SCHEMA).field("nested", NESTED)
            .field("list", SchemaBuilder.array(Schema.INT32_SCHEMA).build())
            .field("map", SchemaBuilder.map(Schema.STRING_SCHEMA, Schema.OPTIONAL_BOOLEAN_SCHEMA).build()).build();
        private String topic;
        private long next;
        @Override public String version() { return "1"; }
        @Override public void start(Map<String, String> config) { topic = config.get("topic"); }
        @Override public List<SourceRecord> poll() throws InterruptedException {
            if (next >= 1000) { Thread.sleep(100); return null; }
            List<SourceRecord> records = new ArrayList<>();
            for (int i = 0; i < 70 && next < 1000; i++, next++) records.add(record(next));
            return records;
        }
        private SourceRecord record(long n) {
            Map<String, Object> partition = new LinkedHashMap<>();
            partition.put("table", "t" + n % 3);
            partition.put("shard", n % 2);
            Map<String, Object> offset = new LinkedHashMap<>();
            offset.put("n", n);
            offset.put("text", "\u00e9\"" + n);
            offset.put("real", n / 4.0);
            offset.put("none", null);
            SourceRecord record;
            if (n % 5 == 4) record = new SourceRecord(partition, offset, topic, null, null, n % 2 == 0 ? null : n, null, value(n));
            else record = new SourceRecord(partition, offset, topic, null, Schema.STRING_SCHEMA, "k" + n, SCHEMA, struct(n), 1000 + n);
            if (n % 7 == 0) record.headers().addLong("n", n).addString("\u00e9", "\u00fc").add("none", null, null);
            return record;
        }
        private Object value(long n) {
            if (n % 10 == 4) return null;
            return new LinkedHashMap<>(Map.of("list", List.of(1, 2L, 3.5, "x")));
        }
        private Struct struct(long n) {
            Struct struct = new Struct(SCHEMA).put("id", n).put("real", n * 1e-7).put("at", new java.util.Date(n * 1_000_003L));
            struct.put("amount", new java.math.BigDecimal(java.math.BigInteger.valueOf(n * 77), 2));
            struct.put("small", n % 3 == 0 ? null : (byte) n).put("bytes", n % 4 == 0 ? null : new byte[] {(byte) n, -1});
            struct.put("nested", n % 6 == 0 ? null : new Struct(NESTED).put("text", "\u4e16" + n));
            return struct.put("list", List.of((int) n, -1)).put("map", Collections.singletonMap("key", n % 2 == 0 ? null : true));
        }
        @Override public void stop() {}
    }
}
