package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.components.Versioned;
import org.apache.kafka.connect.runtime.isolation.PluginDesc;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Describes plugins of any kind: their versions, as Connect learns them when it starts, and their keys. */
final class PluginsObject implements Hosted {
    @Override
    public Answer call(String method, JsonNode args, ByteBuffer body) throws Exception {
        switch (method) {
            case "versions":
                List<Object> described = new ArrayList<>();
                for (JsonNode plugin : args.get("plugins")) described.add(describe(plugin));
                return Answer.of(described);
            case "config":
                return Answer.of(Definitions.of(definition(args.get("plugin"))));
            case "recommend":
                return recommend(definition(args.get("plugin")), args.get("name").asText(), Loaders.texts(args.get("values")));
            case "validate": // one key by its validator; what it throws becomes the error
                ConfigDef.ConfigKey key = definition(args.get("plugin")).configKeys().get(args.get("name").asText());
                Object value = ConfigDef.parseType(key.name, args.get("value").asText(null), key.type);
                key.validator.ensureValid(key.name, value);
                return Answer.NONE;
            default:
                throw new IllegalArgumentException("There is no method " + method);
        }
    }

    private static ConfigDef definition(JsonNode reference) throws Exception {
        Object plugin = Loaders.create(reference, Object.class);
        if (plugin instanceof Transformation<?> transformation) return transformation.config();
        if (plugin instanceof Predicate<?> predicate) return predicate.config();
        if (plugin instanceof Converter converter) return converter.config();
        return ((HeaderConverter) plugin).config();
    }

    /** Asks the recommender of one key, given the values of all keys. */
    private static Answer recommend(ConfigDef definition, String name, Map<String, String> texts) {
        Map<String, Object> values = new HashMap<>();
        definition.configKeys().forEach((each, key) -> values.put(each, ConfigDef.parseType(each, texts.get(each), key.type)));
        ConfigDef.ConfigKey key = definition.configKeys().get(name);
        ConfigDef.Type type = key.type == ConfigDef.Type.LIST ? ConfigDef.Type.STRING : key.type;
        List<String> recommended = new ArrayList<>();
        for (Object each : key.recommender.validValues(name, values)) recommended.add(Definitions.text(each, type));
        return Answer.of(Map.of("values", recommended, "visible", key.recommender.visible(name, values)));
    }

    private static Map<String, String> describe(JsonNode plugin) {
        try {
            return Map.of("version", version(Loaders.create(plugin, Object.class)));
        } catch (Throwable error) { // also a class for a newer Java, or one that lacks a dependency
            return Map.of("error", Loaders.root(error).toString());
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
