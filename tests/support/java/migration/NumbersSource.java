package org.sluiceway.tests.migration;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** Produces the lines "line 1", "line 2", ... to a topic, one every 20 ms. The offset is the last number. */
public class NumbersSource extends SourceConnector {
    private Map<String, String> config;

    @Override
    public void start(Map<String, String> config) {
        this.config = config;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return NumbersTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int maxTasks) {
        return List.of(config);
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return new ConfigDef().define("topic", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "The topic.");
    }

    @Override
    public String version() {
        return "1.2.3";
    }

    public static class NumbersTask extends SourceTask {
        private static final Map<String, String> PARTITION = Collections.singletonMap("numbers", "all");
        private String topic;
        private long last;

        @Override
        public void start(Map<String, String> config) {
            topic = config.get("topic");
            Map<String, Object> offset = context.offsetStorageReader().offset(PARTITION);
            last = offset == null ? 0 : (Long) offset.get("last");
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(20);
            last++;
            Map<String, Long> offset = Collections.singletonMap("last", last);
            return List.of(new SourceRecord(PARTITION, offset, topic, Schema.STRING_SCHEMA, "line " + last));
        }

        @Override
        public void stop() {}

        @Override
        public String version() {
            return "1.2.3";
        }
    }
}
