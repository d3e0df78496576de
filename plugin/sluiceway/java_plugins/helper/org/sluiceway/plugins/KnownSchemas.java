package org.sluiceway.plugins;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.json.JsonConverterConfig;
import org.apache.kafka.connect.storage.Converter;

/**
 * Kafka's JsonConverter for messages that carry their schema. If a message's schema has the same bytes as one before it, only its payload
 * is parsed, by a JsonConverter that has this schema as its schema.content (KIP-1054). All other messages, and those that this way
 * refuses, are left to the converter that the user configured: its results and errors are the ones to have.
 */
final class KnownSchemas {
    private static final byte[] SCHEMA = "{\"schema\":{".getBytes(StandardCharsets.UTF_8);
    private static final byte[] PAYLOAD = ",\"payload\":".getBytes(StandardCharsets.UTF_8);
    private static final int MOST_OF_TOPIC = 4;
    private static final int MOST = 100;
    private static final int MISSES = 1000;

    private final Converter whole;
    private final Map<String, String> config;
    private final boolean isKey;
    private final Map<String, List<Known>> byTopic = new HashMap<>();
    private int count;
    private int misses;

    /** The bytes up to the payload, and the converter of payloads that follow them. */
    private record Known(byte[] start, JsonConverter converter) {
        /** Returns null if the message does not begin with this schema or does not end with its payload. */
        SchemaAndValue convert(String topic, byte[] message) {
            int end = message.length - 1;
            if (end <= start.length || !Arrays.equals(message, 0, start.length, start, 0, start.length)) return null;
            if (message[start.length] != '{' || endOfObject(message, start.length) != end || message[end] != '}') return null;
            try {
                return converter.toConnectData(topic, Arrays.copyOfRange(message, start.length, end));
            } catch (RuntimeException error) {
                return null; // it is converted again, by the converter whose error the user knows
            }
        }
    }

    /** Converts the key or value of a consumed message. */
    interface Reader {
        SchemaAndValue read(String topic, Headers headers, byte[] message);
    }

    private KnownSchemas(Converter whole, Map<String, String> config, boolean isKey) {
        this.whole = whole;
        this.config = config;
        this.isKey = isKey;
    }

    /** Returns the converter's own way of reading unless it is Kafka's for JSON and takes schemas from messages. */
    static Reader of(Converter converter, Map<String, String> config, boolean isKey) {
        if (converter.getClass() != JsonConverter.class) return converter::toConnectData;
        ConfigDef definition = JsonConverterConfig.configDef();
        AbstractConfig parsed = new AbstractConfig(definition, config, false);
        boolean parameter = definition.names().contains("schema.content"); // since Kafka 4.2
        if (!parameter || !parsed.getBoolean("schemas.enable") || parsed.getString("schema.content") != null) return converter::toConnectData;
        return new KnownSchemas(converter, config, isKey)::read;
    }

    private SchemaAndValue read(String topic, Headers headers, byte[] message) {
        if (message == null) return whole.toConnectData(topic, headers, null);
        List<Known> ofTopic = byTopic.getOrDefault(topic, List.of());
        for (Known each : ofTopic) {
            SchemaAndValue converted = each.convert(topic, message);
            if (converted != null) return converted;
        }
        SchemaAndValue converted = whole.toConnectData(topic, headers, message);
        remember(topic, message);
        return converted;
    }

    /** Keeps the schema of a message that was converted. Of a topic with many, a few are kept, and seldom changed for newer ones. */
    private void remember(String topic, byte[] message) {
        if (message.length < SCHEMA.length || !Arrays.equals(message, 0, SCHEMA.length, SCHEMA, 0, SCHEMA.length)) return;
        List<Known> ofTopic = byTopic.computeIfAbsent(topic, any -> new ArrayList<>());
        boolean full = ofTopic.size() >= MOST_OF_TOPIC || count >= MOST;
        if (full && (ofTopic.isEmpty() || ++misses % MISSES != 0)) return;
        int from = SCHEMA.length - 1;
        int end = endOfObject(message, from);
        int payload = end + PAYLOAD.length;
        if (end < 0 || payload > message.length || !Arrays.equals(message, end, payload, PAYLOAD, 0, PAYLOAD.length)) return;
        byte[] start = Arrays.copyOf(message, payload);
        if (ofTopic.stream().anyMatch(each -> Arrays.equals(each.start, start))) return; // its payload is no object
        Map<String, String> withSchema = new HashMap<>(config);
        withSchema.put("schema.content", new String(message, from, end - from, StandardCharsets.UTF_8));
        JsonConverter converter = new JsonConverter();
        converter.configure(withSchema, isKey);
        if (full) ofTopic.remove(0);
        else count++;
        ofTopic.add(new Known(start, converter));
    }

    /** Returns the index after the object that begins at {@code from}, -1 if it does not end. What is inside it is not checked. */
    private static int endOfObject(byte[] json, int from) {
        boolean quoted = false;
        int depth = 0;
        for (int i = from; i < json.length; i++) {
            byte next = json[i];
            if (quoted) {
                if (next == '\\') i++;
                else if (next == '"') quoted = false;
            } else if (next == '"') quoted = true;
            else if (next == '{') depth++;
            else if (next == '}' && --depth == 0) return i + 1;
        }
        return -1;
    }
}
