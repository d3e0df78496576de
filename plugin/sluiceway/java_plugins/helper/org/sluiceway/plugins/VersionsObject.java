package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.components.Versioned;
import org.apache.kafka.connect.runtime.isolation.PluginDesc;

/** Creates plugins to learn their versions, as Connect does when it starts. */
final class VersionsObject implements Hosted {
    @Override
    public Answer call(String method, JsonNode args, ByteBuffer body) {
        List<Object> described = new ArrayList<>();
        for (JsonNode plugin : args.get("plugins")) described.add(describe(plugin));
        return Answer.of(described);
    }

    private static Map<String, String> describe(JsonNode plugin) {
        try {
            return Map.of("version", version(Loaders.create(plugin, Object.class)));
        } catch (Throwable error) { // also a class for a newer Java, or one that lacks a dependency
            Throwable cause = error;
            while (cause.getCause() != null && cause.getCause() != cause) cause = cause.getCause();
            return Map.of("error", cause.toString());
        }
    }

    private static String version(Object plugin) {
        try {
            if (plugin instanceof Versioned versioned) return String.valueOf(versioned.version());
        } catch (Throwable error) { // Connect ignores it too
            return PluginDesc.UNDEFINED_VERSION;
        }
        return PluginDesc.UNDEFINED_VERSION;
    }
}
