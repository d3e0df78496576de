package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** The transforms and converters of one task. Python decides about errors: {@code stage} and {@code by()} tell it what failed. */
final class Chain<R extends ConnectRecord<R>> {
    /** The stage that ran last, with Connect's name. */
    String stage;
    private Object plugin;
    /** The index of the transform that ran last. */
    int step;

    final Converter key;
    final Converter value;
    final HeaderConverter header;
    /** The ways in which messages are converted with {@code key} and {@code value}. */
    final KnownSchemas.Reader keys;
    final KnownSchemas.Reader values;
    private final List<Step<R>> steps = new ArrayList<>();

    private record Step<R extends ConnectRecord<R>>(String alias, Transformation<R> transform, Predicate<R> predicate, boolean negate) {}

    /** Creates and configures the plugins of {@code {"transforms": [{plugin, config, predicate, negate}], "key": {plugin, config}, ...}}. */
    @SuppressWarnings("unchecked")
    Chain(JsonNode chain) throws Exception {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        try {
            for (JsonNode each : chain.path("transforms")) {
                Transformation<R> transform = Loaders.create(each.get("plugin"), Transformation.class);
                transform.configure(Loaders.texts(each.get("config")));
                LocalMetrics.offer(transform, "transformation", each.path("alias").asText());
                Predicate<R> predicate = null;
                if (each.hasNonNull("predicate")) {
                    predicate = Loaders.create(each.get("predicate").get("plugin"), Predicate.class);
                    predicate.configure(Loaders.texts(each.get("predicate").get("config")));
                    LocalMetrics.offer(predicate, "predicate", each.get("predicate").path("alias").asText());
                }
                steps.add(new Step<>(each.path("alias").asText(), transform, predicate, each.path("negate").asBoolean()));
            }
            key = chain.hasNonNull("key") ? converter(chain.get("key"), true) : null;
            value = chain.hasNonNull("value") ? converter(chain.get("value"), false) : null;
            keys = key == null ? null : KnownSchemas.of(key, config(chain.get("key"), true), true);
            values = value == null ? null : KnownSchemas.of(value, config(chain.get("value"), false), false);
            header = chain.hasNonNull("header") ? headerConverter(chain.get("header")) : null;
        } finally {
            Thread.currentThread().setContextClassLoader(before);
        }
    }

    private static Converter converter(JsonNode spec, boolean isKey) throws Exception {
        Converter converter = Loaders.create(spec.get("plugin"), Converter.class);
        converter.configure(config(spec, isKey), isKey);
        LocalMetrics.offer(converter, "converter", isKey ? "key" : "value");
        return converter;
    }

    private static Map<String, String> config(JsonNode spec, boolean isKey) {
        Map<String, String> config = Loaders.texts(spec.get("config"));
        config.put("converter.type", isKey ? "key" : "value");
        return config;
    }

    private static HeaderConverter headerConverter(JsonNode spec) throws Exception {
        HeaderConverter header = Loaders.create(spec.get("plugin"), HeaderConverter.class);
        Map<String, String> config = Loaders.texts(spec.get("config"));
        config.put("converter.type", "header");
        header.configure(config);
        LocalMetrics.offer(header, "converter", "header");
        return header;
    }

    /** Returns the transformed record, or null if a transform filtered it out. */
    R transform(R record) {
        stage = "TRANSFORMATION";
        for (step = 0; step < steps.size(); step++) {
            Step<R> each = steps.get(step);
            plugin = each.transform;
            if (each.predicate != null && each.predicate.test(record) == each.negate) continue;
            record = each.transform.apply(record);
            if (record == null) return null;
        }
        return record;
    }

    /** Returns the alias of the transform that ran last, null if there was none. */
    String alias() {
        return step < steps.size() ? steps.get(step).alias : null;
    }

    /** Returns the name of the class of the plugin that ran last. */
    String by() {
        return plugin.getClass().getName();
    }

    void at(String stage, Object plugin) {
        this.stage = stage;
        this.plugin = plugin;
    }

    void close() {
        for (Step<R> step : steps) {
            quietly(step.transform);
            quietly(step.predicate);
        }
        quietly(key);
        quietly(value);
        quietly(header);
    }

    static void quietly(AutoCloseable plugin) {
        try {
            if (plugin != null) plugin.close();
        } catch (Exception error) {
            org.slf4j.LoggerFactory.getLogger(Chain.class).warn("Closing a plugin failed", error);
        }
    }
}
