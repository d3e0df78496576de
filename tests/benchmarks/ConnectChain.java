import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Kafka Connect's side of bench_chain.py: its JsonConverter and transforms on one thread.
 *
 * Arguments: a folder and the topic. The folder has chain.properties, and the JSON values in files named "schemas" and
 * "schemaless". Each line on the standard input is a measure ("whole" or "chain") and the name of such a file; the answer is the
 * processor seconds of this process. For the measure "check" the answer is the first result.
 */
public class ConnectChain {
    private static final com.sun.management.OperatingSystemMXBean SYSTEM =
        (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static long sink;  // keeps the results alive

    private final JsonConverter converter = new JsonConverter();
    private final List<Transformation<SinkRecord>> transforms = new ArrayList<>();
    private final String topic;

    private ConnectChain(Properties properties, String topic, boolean schemas) throws ReflectiveOperationException {
        this.topic = topic;
        converter.configure(Map.of("schemas.enable", schemas), false);
        for (String alias : properties.getProperty("transforms").split(",")) {
            String prefix = "transforms." + alias + ".";
            Map<String, String> options = new HashMap<>();
            for (String key : properties.stringPropertyNames()) {
                if (key.startsWith(prefix)) {
                    options.put(key.substring(prefix.length()), properties.getProperty(key));
                }
            }
            @SuppressWarnings("unchecked")
            Transformation<SinkRecord> transform =
                (Transformation<SinkRecord>) Class.forName(options.remove("type")).getDeclaredConstructor().newInstance();
            transform.configure(options);
            transforms.add(transform);
        }
    }

    private SinkRecord decoded(byte[] value, long offset) {
        SchemaAndValue data = converter.toConnectData(topic, value);
        return new SinkRecord(topic, 0, null, null, data.schema(), data.value(), offset);
    }

    private SinkRecord transformed(SinkRecord record) {
        for (Transformation<SinkRecord> transform : transforms) {
            record = transform.apply(record);
        }
        return record;
    }

    private void print(byte[] value) {
        SinkRecord record = transformed(decoded(value, 0));
        byte[] text = converter.fromConnectData(record.topic(), record.valueSchema(), record.value());
        System.out.println(new String(text, StandardCharsets.UTF_8));
    }

    private double whole(List<byte[]> values) {
        long started = SYSTEM.getProcessCpuTime();
        long offset = 0;
        for (byte[] value : values) {
            SinkRecord record = transformed(decoded(value, offset++));
            sink += converter.fromConnectData(record.topic(), record.valueSchema(), record.value()).length;
        }
        return (SYSTEM.getProcessCpuTime() - started) / 1e9;
    }

    private double chain(List<byte[]> values) {
        List<SinkRecord> records = new ArrayList<>();
        for (byte[] value : values) {
            records.add(decoded(value, records.size()));
        }
        long started = SYSTEM.getProcessCpuTime();
        for (SinkRecord record : records) {
            sink += transformed(record).kafkaOffset();
        }
        return (SYSTEM.getProcessCpuTime() - started) / 1e9;
    }

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        Properties properties = new Properties();
        properties.load(Files.newBufferedReader(folder.resolve("chain.properties")));
        Map<String, ConnectChain> chains = new HashMap<>();
        Map<String, List<byte[]>> values = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            String kind = words[1];
            if (!chains.containsKey(kind)) {
                chains.put(kind, new ConnectChain(properties, args[1], kind.equals("schemas")));
                values.put(kind, valuesOf(folder.resolve(kind)));
            }
            ConnectChain chain = chains.get(kind);
            switch (words[0]) {
                case "check" -> chain.print(values.get(kind).get(0));
                case "whole" -> System.out.println(chain.whole(values.get(kind)));
                default -> System.out.println(chain.chain(values.get(kind)));
            }
        }
    }

    private static List<byte[]> valuesOf(Path file) throws java.io.IOException {
        List<byte[]> values = new ArrayList<>();
        for (String line : Files.readAllLines(file)) {
            values.add(line.getBytes(StandardCharsets.UTF_8));
        }
        return values;
    }
}
