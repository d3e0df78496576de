package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.Config;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkConnectorContext;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceConnectorContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/** A connector: its definition and validation, and once started, its task configs. */
final class ConnectorObject implements Hosted {
    private final Connector connector;

    ConnectorObject(Calls python, JsonNode args) throws Exception {
        connector = Loaders.create(args.get("plugin"), Connector.class);
        if (connector instanceof SourceConnector) connector.initialize(new SourceContext(python));
        else connector.initialize(new SinkContext(python));
    }

    @Override
    public Answer call(String method, JsonNode args, ByteBuffer body) throws Exception {
        Map<String, String> config = Loaders.texts(args.path("config"));
        switch (method) {
            case "config":
                return Answer.of(Definitions.of(connector.config()));
            case "validate":
                Config validated = connector.validate(config);
                return Answer.of(Definitions.values(connector.config(), validated.configValues()));
            case "version":
                return Answer.of(connector.version());
            case "start":
                connector.start(config);
                return Answer.of(connector.taskClass().getName());
            case "taskConfigs":
                return Answer.of(connector.taskConfigs(args.get("max").asInt()));
            case "stop":
                LocalMetrics.log();
                connector.stop();
                return Answer.NONE;
            case "exactlyOnceSupport":
                return name(((SourceConnector) connector).exactlyOnceSupport(config));
            case "canDefineTransactionBoundaries":
                return name(((SourceConnector) connector).canDefineTransactionBoundaries(config));
            case "alterOffsets":
                return Answer.of(alterOffsets(config, args.get("offsets")));
            default:
                throw new IllegalArgumentException("A connector has no method " + method);
        }
    }

    private static Answer name(Enum<?> answer) {
        return Answer.of(answer == null ? null : answer.name());
    }

    private boolean alterOffsets(Map<String, String> config, JsonNode offsets) throws Exception {
        if (connector instanceof SinkConnector sink) {
            Map<TopicPartition, Long> positions = new HashMap<>();
            for (JsonNode each : offsets)
                positions.put(
                    new TopicPartition(each.get(0).asText(), each.get(1).asInt()), each.get(2).isNull() ? null : each.get(2).asLong());
            return sink.alterOffsets(config, positions);
        }
        Map<Map<String, ?>, Map<String, ?>> positions = new LinkedHashMap<>();
        for (JsonNode each : offsets) positions.put(Offsets.parse(each.get(0).asText()), Offsets.parse(each.get(1).asText(null)));
        return ((SourceConnector) connector).alterOffsets(config, positions);
    }

    private static class SinkContext implements SinkConnectorContext {
        private final Calls python;
        private final PluginMetrics metrics = LocalMetrics.ofTask();

        SinkContext(Calls python) {
            this.python = python;
        }

        @Override
        public void requestTaskReconfiguration() {
            python.call("requestTaskReconfiguration", null);
        }

        @Override
        public void raiseError(Exception error) {
            python.call("raiseError", Host.describe(error));
        }

        @Override
        public PluginMetrics pluginMetrics() {
            return metrics;
        }
    }

    private static final class SourceContext extends SinkContext implements SourceConnectorContext {
        private final OffsetStorageReader offsets;

        SourceContext(Calls python) {
            super(python);
            offsets = new Offsets(python);
        }

        @Override
        public OffsetStorageReader offsetStorageReader() {
            return offsets;
        }
    }
}
