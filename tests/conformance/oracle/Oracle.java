import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.runtime.ConnectorConfig;
import org.apache.kafka.connect.runtime.TransformationStage;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.util.ConnectorTaskId;

/** Asks Kafka Connect's own classes: questions in the vectors' form on standard input, answers on standard output. */
public final class Oracle {
    static final JsonMapper JSON = JsonMapper.builder()
            .enable(JsonWriteFeature.ESCAPE_NON_ASCII)
            .enable(DeserializationFeature.USE_BIG_INTEGER_FOR_INTS)
            .build();
    private static final String SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector";

    private final BrokerlessWorker worker = new BrokerlessWorker();
    private final JsonConverter wire = new JsonConverter();

    private Oracle() {
        JSON.getFactory().setStreamReadConstraints(StreamReadConstraints.builder().maxNumberLength(100_000).build());
        wire.configure(Map.of("schemas.enable", "true"), false);
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Oracle oracle = new Oracle();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (!line.isEmpty()) {
                JsonNode question = JSON.readTree(line);
                ObjectNode answer = JSON.createObjectNode();
                answer.set("id", question.get("id"));
                answer.set("expect", oracle.ask(question));
                out.println(JSON.writeValueAsString(answer));
            }
        }
        out.flush();
        System.exit(0);
    }

    /** Answers one question; "unanswered" where the question itself cannot be put to Connect. */
    private JsonNode ask(JsonNode question) {
        try {
            switch (question.get("kind").asText()) {
                case "transform": return transform(question);
                case "converter": return convert(question);
                default: return worker.ask(question);
            }
        } catch (Exception | StackOverflowError | AssertionError error) {
            return JSON.createObjectNode().put("unanswered", error.toString());
        }
    }

    // --- transforms ---

    private JsonNode transform(JsonNode question) {
        ConnectRecord<?> record = readRecord(question.get("record"));
        Map<String, String> config = properties(question.get("config"));
        config.putIfAbsent("name", "conformance");
        config.putIfAbsent("connector.class", SINK);
        return record instanceof SinkRecord ? run((SinkRecord) record, config) : run((SourceRecord) record, config);
    }

    private <R extends ConnectRecord<R>> JsonNode run(R record, Map<String, String> config) {
        List<TransformationStage<R>> stages;
        try {
            stages = new ConnectorConfig(worker.plugins(), config)
                    .transformationStages(worker.plugins(), new ConnectorTaskId("conformance", 0), worker.metrics());
        } catch (Exception error) {
            return Errors.at("configure", error);
        }
        R current = record;
        int index = 0;
        try {
            for (; index < stages.size() && current != null; index++) {
                current = stages.get(index).apply(current);
            }
        } catch (Exception error) {
            return Errors.at("apply", error, index);
        } finally {
            stages.forEach(TransformationStage::close);
        }
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode records = answer.putArray("records");
        if (current != null) {
            records.add(writeRecord(current));
            ObjectNode refused = JSON.createObjectNode();
            tryWire(refused, "key", current.topic(), new SchemaAndValue(current.keySchema(), current.key()));
            tryWire(refused, "value", current.topic(), new SchemaAndValue(current.valueSchema(), current.value()));
            if (!refused.isEmpty()) {
                answer.set("wire_errors", refused);
            }
        }
        return answer;
    }

    private void tryWire(ObjectNode refused, String part, String topic, SchemaAndValue data) {
        try {
            wire.fromConnectData(topic, data.schema(), data.value());
        } catch (Exception error) {
            refused.set(part, Errors.describe(error));
        }
    }

    private static ConnectRecord<?> readRecord(JsonNode node) {
        SchemaAndValue key = VectorData.read(node.get("key"), "payload");
        SchemaAndValue value = VectorData.read(node.get("value"), "payload");
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode header : node.get("headers")) {
            headers.add(header.get("key").asText(), VectorData.read(header, "value"));
        }
        String topic = node.get("topic").isNull() ? null : node.get("topic").asText();
        Integer partition = node.get("partition").isNull() ? null : (Integer) node.get("partition").asInt();
        Long timestamp = node.get("timestamp").isNull() ? null : (Long) node.get("timestamp").asLong();
        if (node.get("side").asText().equals("source")) {
            return new SourceRecord(Map.of("sp", 1), Map.of("so", 2), topic, partition,
                    key.schema(), key.value(), value.schema(), value.value(), timestamp, headers);
        }
        return new SinkRecord(topic, partition, key.schema(), key.value(), value.schema(), value.value(),
                node.get("offset").asLong(), timestamp, TimestampType.NO_TIMESTAMP_TYPE, headers);
    }

    private static JsonNode writeRecord(ConnectRecord<?> record) {
        ObjectNode node = JSON.createObjectNode();
        node.put("side", record instanceof SinkRecord ? "sink" : "source").put("topic", record.topic());
        node.put("partition", record.kafkaPartition()).put("timestamp", record.timestamp());
        if (record instanceof SinkRecord) {
            node.put("offset", ((SinkRecord) record).kafkaOffset());
        }
        node.set("key", VectorData.write(new SchemaAndValue(record.keySchema(), record.key()), "payload"));
        node.set("value", VectorData.write(new SchemaAndValue(record.valueSchema(), record.value()), "payload"));
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            ObjectNode written = VectorData.write(new SchemaAndValue(header.schema(), header.value()), "value");
            headers.add(written.put("key", header.key()));
        }
        return node;
    }

    // --- converters ---

    private static JsonNode convert(JsonNode question) throws ReflectiveOperationException {
        String operation = question.get("op").asText();
        boolean header = operation.endsWith("_header");
        boolean from = operation.startsWith("from");
        Object converter = Class.forName(question.get("class").asText()).getDeclaredConstructor().newInstance();
        SchemaAndValue data = from ? VectorData.read(question.get("data"), "payload") : null;
        byte[] bytes = from ? null : bytes(question);
        String topic = question.get("topic").isNull() ? null : question.get("topic").asText();
        Map<String, String> config = properties(question.get("config"));
        try {
            if (header) {
                config.putIfAbsent("converter.type", "header");
                ((HeaderConverter) converter).configure(config);
            } else {
                ((Converter) converter).configure(config, question.get("is_key").asBoolean());
            }
        } catch (Exception error) {
            return Errors.at("configure", error);
        }
        try {
            if (from) {
                return writeBytes(header
                        ? ((HeaderConverter) converter).fromConnectHeader(topic, "h", data.schema(), data.value())
                        : ((Converter) converter).fromConnectData(topic, data.schema(), data.value()));
            }
            SchemaAndValue result = header
                    ? ((HeaderConverter) converter).toConnectHeader(topic, "h", bytes)
                    : ((Converter) converter).toConnectData(topic, bytes);
            ObjectNode answer = JSON.createObjectNode();
            answer.set("data", result == null ? null : VectorData.write(result, "payload"));
            return answer;
        } catch (Exception error) {
            return Errors.at(operation, error);
        }
    }

    private static byte[] bytes(JsonNode question) {
        if (question.has("text")) {
            return question.get("text").asText().getBytes(StandardCharsets.UTF_8);
        }
        return question.get("bytes").isNull() ? null : Base64.getDecoder().decode(question.get("bytes").asText());
    }

    private static JsonNode writeBytes(byte[] bytes) {
        ObjectNode answer = JSON.createObjectNode();
        if (bytes == null) {
            return answer.putNull("bytes");
        }
        answer.put("bytes", Base64.getEncoder().encodeToString(bytes));
        String text = new String(bytes, StandardCharsets.UTF_8);
        return java.util.Arrays.equals(text.getBytes(StandardCharsets.UTF_8), bytes) ? answer.put("text", text) : answer;
    }

    static Map<String, String> properties(JsonNode node) {
        Map<String, String> config = new HashMap<>();
        for (Map.Entry<String, JsonNode> entry : node.properties()) {
            config.put(entry.getKey(), entry.getValue().isNull() ? null : entry.getValue().asText());
        }
        return config;
    }
}
