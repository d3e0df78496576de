package org.sluiceway.plugins;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.runtime.InternalSinkRecord;
import org.apache.kafka.connect.runtime.WorkerSinkTaskContext;
import org.apache.kafka.connect.sink.ErrantRecordReporter;
import org.apache.kafka.connect.sink.SinkRecord;

/**
 * A sink task's context, which passes requests on to Python. It extends Connect's own class because some tasks (Iceberg's) read that
 * class's field {@code consumer} by reflection, for its group's metadata and committed offsets.
 */
final class SinkContext extends WorkerSinkTaskContext {
    final Set<TopicPartition> assigned;
    private final ConsumerView consumer;
    private final Hosted.Calls python;
    private final Map<String, String> config;
    private final PluginMetrics metrics = LocalMetrics.ofTask();
    private final boolean reports;
    private final Chain<SinkRecord> chain;
    private volatile boolean requested;
    private volatile Long timeout; // that was requested since takeRequested

    SinkContext(Hosted.Calls python, Map<String, String> config, boolean reports, Chain<SinkRecord> chain) {
        this(new ConsumerView(python), python, config, reports, chain);
    }

    private SinkContext(ConsumerView consumer, Hosted.Calls python, Map<String, String> config, boolean reports, Chain<SinkRecord> chain) {
        super(consumer.consumer(), null, null);
        this.consumer = consumer;
        this.assigned = consumer.assigned;
        this.python = python;
        this.config = config;
        this.reports = reports;
        this.chain = chain;
    }

    /** Returns whether the task has requested something of Python since the last call. */
    boolean takeRequested() {
        boolean before = requested;
        requested = false;
        timeout = null;
        return before;
    }

    /** Returns the timeout that was requested since {@code takeRequested}, null if none was. */
    Long requestedTimeout() {
        return timeout;
    }

    private void call(String method, Object args) {
        requested = true;
        python.call(method, args);
    }

    @Override
    public Map<String, String> configs() {
        return config;
    }

    @Override
    public void offset(Map<TopicPartition, Long> offsets) {
        requested = true;
        consumer.seek(offsets);
    }

    @Override
    public void offset(TopicPartition partition, long offset) {
        offset(Map.of(partition, offset));
    }

    @Override
    public void timeout(long milliseconds) {
        call("timeout", milliseconds);
        timeout = milliseconds;
    }

    @Override
    public Set<TopicPartition> assignment() {
        return Set.copyOf(assigned);
    }

    @Override
    public void pause(TopicPartition... partitions) {
        call("pause", ConsumerView.rows(List.of(partitions)));
    }

    @Override
    public void resume(TopicPartition... partitions) {
        call("resume", ConsumerView.rows(List.of(partitions)));
    }

    @Override
    public void requestCommit() {
        call("requestCommit", null);
    }

    @Override
    public PluginMetrics pluginMetrics() {
        return metrics;
    }

    @Override
    public ErrantRecordReporter errantRecordReporter() {
        return reports ? this::report : null;
    }

    /** Passes a bad record on. Python commits no offset after it before the record is in the dead letter queue. */
    private Future<Void> report(SinkRecord record, Throwable error) {
        Map<String, Object> args = new HashMap<>(Map.of("error", Host.describe(error)));
        if (record instanceof InternalSinkRecord internal) args.put("message", message(internal.context().original()));
        else if (chain != null) args.put("message", converted(record));
        else args.put("record", record(record));
        call("report", args);
        return CompletableFuture.completedFuture(null);
    }

    /** Returns a record that the task has made itself as a message. */
    private List<Object> converted(SinkRecord record) {
        String topic = record.topic();
        List<Object> headers = new ArrayList<>();
        for (org.apache.kafka.connect.header.Header each : record.headers()) {
            headers.add(Arrays.asList(each.key(), chain.header.fromConnectHeader(topic, each.key(), each.schema(), each.value())));
        }
        return Arrays.asList(topic, record.kafkaPartition(), record.kafkaOffset(), record.timestampType().id,
            record.timestamp() == null ? -1L : record.timestamp(), chain.key.fromConnectData(topic, record.keySchema(), record.key()),
            chain.value.fromConnectData(topic, record.valueSchema(), record.value()), headers);
    }

    /** Returns a consumed message as a row. */
    static List<Object> message(ConsumerRecord<byte[], byte[]> message) {
        List<Object> headers = new ArrayList<>();
        for (Header each : message.headers()) headers.add(Arrays.asList(each.key(), each.value()));
        return Arrays.asList(message.topic(), message.partition(), message.offset(), message.timestampType().id,
            message.timestamp(), message.key(), message.value(), headers);
    }

    /** Returns the row of a record that the task has made itself. */
    private static String record(SinkRecord record) {
        Values values = new Values();
        Rows.write(values.begin(), record, List.of(record.kafkaOffset()));
        ByteBuffer row = values.end();
        return Base64.getEncoder().encodeToString(Arrays.copyOf(row.array(), row.limit()));
    }
}
