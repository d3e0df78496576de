package org.sluiceway.tests;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.runtime.WorkerSinkTaskContext;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** A sink that writes its calls as lines to the file `calls`, and does what the values of records say. */
public class ScriptedSink extends SinkConnector {
    private Map<String, String> config;

    @Override public void start(Map<String, String> config) { this.config = config; }
    @Override public Class<? extends Task> taskClass() { return Scripted.class; }
    @Override public List<Map<String, String>> taskConfigs(int most) { return List.of(config); }
    @Override public void stop() {}
    @Override public ConfigDef config() { return new ConfigDef().define("calls", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, ""); }
    @Override public String version() { return "1"; }

    public static class Scripted extends SinkTask {
        private Path calls;
        private Map<String, String> config;
        private final List<String> done = new ArrayList<>();

        @Override public String version() { return "1"; }
        @Override public void start(Map<String, String> config) { this.config = config; calls = Path.of(config.get("calls")); }
        @Override public void stop() { did("stop"); }
        @Override public void open(Collection<TopicPartition> partitions) { did("open " + partitions.size() + " " + context.assignment().size()); }
        @Override public void close(Collection<TopicPartition> partitions) { did("close " + partitions.size()); }

        @Override public Map<TopicPartition, OffsetAndMetadata> preCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
            did("preCommit");
            return offsets;
        }

        @Override public void put(Collection<SinkRecord> records) {
            for (SinkRecord record : records) {
                String value = String.valueOf(record.value());
                boolean first = done.add(value) && done.indexOf(value) == done.size() - 1;
                TopicPartition place = new TopicPartition(record.originalTopic(), record.originalKafkaPartition());
                if (value.startsWith("hang") && !waited()) return;
                if (value.startsWith("report")) context.errantRecordReporter().report(record, new IllegalStateException("not this one"));
                if (value.startsWith("made")) report(record);
                if (value.startsWith("timeout") && first) { context.timeout(10); throw new RetriableException("later"); }
                if (value.startsWith("wait")) did(value + " at " + System.currentTimeMillis());
                if (value.startsWith("wait") && first) { context.timeout(1500); throw new RetriableException("later"); }
                if (value.startsWith("rewind") && first) context.offset(place, record.originalKafkaOffset() - 1);
                if (value.startsWith("pause")) { context.pause(place); context.resume(place); }
                if (value.startsWith("commit")) context.requestCommit();
                if (value.startsWith("group")) value = group();
                if (value.startsWith("fail")) throw new IllegalArgumentException("cannot write " + value);
                did(value);
            }
        }

        private void report(SinkRecord record) {
            SinkRecord made = new SinkRecord("made", 7, null, "k", null, "v", 5);
            context.errantRecordReporter().report(made, new IllegalStateException("made by the task"));
        }

        /** Waits, and does what plugins do when they are interrupted: throw, return (false), or go on. */
        private boolean waited() {
            String interrupted = config.getOrDefault("interrupted", "throw");
            long end = System.nanoTime() + Long.parseLong(config.getOrDefault("hang", "600000")) * 1_000_000;
            for (long left = end; left > 0; left = end - System.nanoTime()) {
                try {
                    Thread.sleep(Math.max(0, end - System.nanoTime()) / 1_000_000);
                } catch (InterruptedException error) {
                    if (interrupted.equals("throw")) throw new org.apache.kafka.connect.errors.ConnectException("interrupted", error);
                    if (interrupted.equals("return")) { Thread.currentThread().interrupt(); return false; }
                }
            }
            return true;
        }

        /** Reads the consumer's group as Iceberg's sink does. */
        private String group() {
            try {
                var field = WorkerSinkTaskContext.class.getDeclaredField("consumer");
                field.setAccessible(true);
                var group = ((Consumer<?, ?>) field.get(context)).groupMetadata();
                return "group " + group.groupId() + " " + (group.generationId() > 0) + " " + !group.memberId().isEmpty();
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }

        private void did(String what) {
            try {
                Files.writeString(calls, what + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }
    }
}
