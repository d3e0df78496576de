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

/** The transforms and converters of one task. Python decides about errors: {@code stage} and {@code by} tell it what failed. */
final class Chain<R extends ConnectRecord<R>> {
    /** The stage that ran last, with Connect's name, and the name of its class. */
    String stage;
    String by;

    final Converter key;
    final Converter value;
    final HeaderConverter header;
    private final List<Step<R>> steps = new ArrayList<>();

    private record Step<R extends ConnectRecord<R>>(Transformation<R> transform, Predicate<R> predicate, boolean negate) {}

    /** Creates and configures the plugins of {@code {"transforms": [{plugin, config, predicate, negate}], "key": {plugin, config}, ...}}. */
    @SuppressWarnings("unchecked")
    Chain(JsonNode chain) throws Exception {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        try {
            for (JsonNode each : chain.path("transforms")) {
                Transformation<R> transform = Loaders.create(each.get("plugin"), Transformation.class);
                transform.configure(Loaders.texts(each.get("config")));
                Predicate<R> predicate = null;
                if (each.hasNonNull("predicate")) {
                    predicate = Loaders.create(each.get("predicate").get("plugin"), Predicate.class);
                    predicate.configure(Loaders.texts(each.get("predicate").get("config")));
                }
                steps.add(new Step<>(transform, predicate, each.path("negate").asBoolean()));
            }
            key = converter(chain.get("key"), true);
            value = converter(chain.get("value"), false);
            header = Loaders.create(chain.get("header").get("plugin"), HeaderConverter.class);
            Map<String, String> config = Loaders.texts(chain.get("header").get("config"));
            config.put("converter.type", "header");
            header.configure(config);
        } finally {
            Thread.currentThread().setContextClassLoader(before);
        }
    }

    private static Converter converter(JsonNode spec, boolean isKey) throws Exception {
        Converter converter = Loaders.create(spec.get("plugin"), Converter.class);
        Map<String, String> config = Loaders.texts(spec.get("config"));
        config.put("converter.type", isKey ? "key" : "value");
        converter.configure(config, isKey);
        return converter;
    }

    /** Returns the transformed record, or null if a transform filtered it out. */
    R transform(R record) {
        stage = "TRANSFORMATION";
        for (Step<R> step : steps) {
            if (step.predicate != null) {
                by = step.predicate.getClass().getName();
                if (step.predicate.test(record) == step.negate) continue;
            }
            by = step.transform.getClass().getName();
            record = step.transform.apply(record);
            if (record == null) return null;
        }
        return record;
    }

    void at(String stage, Object plugin) {
        this.stage = stage;
        this.by = plugin.getClass().getName();
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

    private static void quietly(AutoCloseable plugin) {
        try {
            if (plugin != null) plugin.close();
        } catch (Exception error) {
            org.slf4j.LoggerFactory.getLogger(Chain.class).warn("Closing a plugin failed", error);
        }
    }
}
