package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/** Reads source offsets from Python's store, which is up to date. They cross as the JSON texts that Connect stores. */
final class Offsets implements OffsetStorageReader {
    private static final JsonConverter JSON = new JsonConverter();

    static {
        JSON.configure(Map.of("schemas.enable", "false"), false);
    }

    private final Hosted.Calls python;

    Offsets(Hosted.Calls python) {
        this.python = python;
    }

    @Override
    public <T> Map<String, Object> offset(Map<String, T> partition) {
        return offsets(List.of(partition)).get(partition);
    }

    @Override
    public <T> Map<Map<String, T>, Map<String, Object>> offsets(Collection<Map<String, T>> partitions) {
        List<String> texts = new ArrayList<>();
        for (Map<String, T> each : partitions) texts.add(text(each));
        JsonNode stored = python.call("offsets", texts);
        Map<Map<String, T>, Map<String, Object>> found = new HashMap<>();
        int index = 0;
        for (Map<String, T> each : partitions) found.put(each, parse(stored.get(index++).asText(null)));
        return found;
    }

    /** Returns a partition or offset as Connect stores it, or null. */
    static String text(Map<String, ?> values) {
        return values == null ? null : new String(JSON.fromConnectData("", null, values), StandardCharsets.UTF_8);
    }

    /** Returns stored JSON with the types that Connect gives it, or null. */
    @SuppressWarnings("unchecked")
    static Map<String, Object> parse(String text) {
        return text == null ? null : (Map<String, Object>) JSON.toConnectData("", text.getBytes(StandardCharsets.UTF_8)).value();
    }
}
