package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;

/** A converter of a task whose other parts run in Python. It converts keys or values, or headers, each with its key. */
final class ConverterObject implements Hosted {
    private final Values values = new Values();
    private final Converter converter;
    private final HeaderConverter header;

    ConverterObject(Calls python, JsonNode args) throws Exception {
        String type = args.path("type").asText();
        Map<String, String> config = Loaders.texts(args.get("config"));
        config.put("converter.type", type);
        if (type.equals("header")) {
            converter = null;
            header = Loaders.create(args.get("plugin"), HeaderConverter.class);
            header.configure(config);
        } else {
            header = null;
            converter = Loaders.create(args.get("plugin"), Converter.class);
            converter.configure(config, type.equals("key"));
        }
        LocalMetrics.offer(converter == null ? header : converter, "converter", type);
    }

    @Override
    public Answer call(String method, JsonNode args, ByteBuffer body) throws Exception {
        if (method.equals("close")) {
            Chain.quietly(converter == null ? header : converter);
            return Answer.NONE;
        }
        String topic = args.path("topic").asText();
        boolean decode = method.equals("to");
        values.open(body);
        int count = values.count();
        values.begin().list(count);
        for (int i = 0; i < count; i++) {
            values.count();
            String key = values.text();
            Schema schema = decode ? null : values.schema();
            Object value = values.read(schema);
            int start = values.position();
            try {
                if (decode) write(decoded(topic, key, (byte[]) value));
                else values.write(encoded(topic, key, schema, value));
            } catch (Exception error) {
                values.rewind(start).tuple(2).write(0).write(Host.describe(error));
            }
        }
        return new Answer(null, values.end());
    }

    private byte[] encoded(String topic, String key, Schema schema, Object value) {
        return header == null ? converter.fromConnectData(topic, schema, value) : header.fromConnectHeader(topic, key, schema, value);
    }

    private SchemaAndValue decoded(String topic, String key, byte[] data) {
        return header == null ? converter.toConnectData(topic, data) : header.toConnectHeader(topic, key, data);
    }

    private void write(SchemaAndValue found) {
        SchemaAndValue known = found == null ? SchemaAndValue.NULL : found;
        values.list(2).write(known.schema(), known.value());
    }
}
