package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** The config definition of a transform, predicate or converter. */
final class DefinitionObject implements Hosted {
    private final Object plugin;

    DefinitionObject(Calls python, JsonNode args) throws Exception {
        plugin = Loaders.create(args.get("plugin"), Object.class);
    }

    @Override
    public Answer call(String method, JsonNode args, ByteBuffer body) {
        return Answer.of(Definitions.of(config()));
    }

    private ConfigDef config() {
        if (plugin instanceof Transformation<?> transform) return transform.config();
        if (plugin instanceof Predicate<?> predicate) return predicate.config();
        return plugin instanceof HeaderConverter header ? header.config() : ((Converter) plugin).config();
    }
}
