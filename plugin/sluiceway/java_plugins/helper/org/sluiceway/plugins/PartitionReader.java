package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads the partitions that Python assigns to a sink task, so that their records never leave Java. Python is the member of the group: it
 * tells which partitions to read, and commits. It learns of a batch which records are in it, not what they hold.
 */
final class PartitionReader implements AutoCloseable {
    private static final int METRICS_MILLISECONDS = 5000;
    private static final String FETCHES = "consumer-fetch-manager-metrics";

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final ArrayDeque<ConsumerRecord<byte[], byte[]>> polled = new ArrayDeque<>();
    private List<ConsumerRecord<byte[], byte[]>> batch = List.of(); // described to Python, but not taken
    private RuntimeException failure; // of a read ahead
    private long metricsDue;

    PartitionReader(Map<String, String> config) {
        ClassLoader ofPlugin = Thread.currentThread().getContextClassLoader();
        Thread.currentThread().setContextClassLoader(PartitionReader.class.getClassLoader());
        try {
            consumer = new KafkaConsumer<>(new HashMap<>(config), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        } finally {
            Thread.currentThread().setContextClassLoader(ofPlugin);
        }
    }

    /**
     * Carries out changes, then reads at most so many records and describes them. Waits for the first. What was read before and not
     * taken is read again.
     */
    Map<String, Object> read(JsonNode changes, long milliseconds, int most) {
        if (failure != null) throw failure;
        if (!changes.isEmpty() || !batch.isEmpty()) unread();
        for (JsonNode each : changes) change(each.get(0).asText(), each.get(1));
        return next(milliseconds, most);
    }

    /** Like {@code read} after {@code take}, but keeps an error for the next {@code read}. */
    Map<String, Object> readAhead(long milliseconds, int most) {
        try {
            return next(milliseconds, most);
        } catch (RuntimeException error) {
            failure = error;
            return describe();
        }
    }

    /** Returns the records of the batch that was described last, without those of some partitions. */
    List<ConsumerRecord<byte[], byte[]>> take(Set<TopicPartition> without) {
        List<ConsumerRecord<byte[], byte[]>> taken = batch;
        batch = List.of();
        if (!without.isEmpty()) taken.removeIf(each -> without.contains(partition(each)));
        return taken;
    }

    /** Undoes the last {@code take}. Nothing may have been read since. */
    void putBack(List<ConsumerRecord<byte[], byte[]>> taken) {
        batch = taken;
    }

    @Override
    @SuppressWarnings("deprecation") // for Kafka before 4.1
    public void close() {
        consumer.close(Duration.ZERO);
    }

    private Map<String, Object> next(long milliseconds, int most) {
        batch = new ArrayList<>(most);
        if (polled.isEmpty() && !consumer.assignment().isEmpty()) {
            for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(Math.max(0, milliseconds))))
                if (batch.size() < most) batch.add(each);
                else polled.add(each);
        }
        while (batch.size() < most && !polled.isEmpty()) batch.add(polled.poll());
        return describe();
    }

    /** Moves the positions back to before the records that Python has not taken. */
    private void unread() {
        Map<TopicPartition, Long> firsts = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> each : batch) firsts.putIfAbsent(partition(each), each.offset());
        for (ConsumerRecord<byte[], byte[]> each : polled) firsts.putIfAbsent(partition(each), each.offset());
        firsts.forEach(consumer::seek);
        polled.clear();
        batch = List.of();
    }

    /** {@code places} are topics, partitions, and offsets where they are needed and known. */
    private void change(String kind, JsonNode places) {
        Set<TopicPartition> assigned = new HashSet<>(consumer.assignment());
        Map<TopicPartition, Long> offsets = new HashMap<>();
        for (JsonNode each : places) {
            TopicPartition partition = new TopicPartition(each.get(0).asText(), each.get(1).asInt());
            if (kind.equals("assign") || assigned.contains(partition)) offsets.put(partition, each.hasNonNull(2) ? each.get(2).asLong() : null);
        }
        switch (kind) {
            case "assign" -> {
                assigned.addAll(offsets.keySet());
                consumer.assign(assigned); // without an offset, the consumer asks for the group's
            }
            case "unassign" -> {
                assigned.removeAll(offsets.keySet());
                consumer.assign(assigned);
            }
            case "pause" -> consumer.pause(offsets.keySet());
            case "resume" -> consumer.resume(offsets.keySet());
            default -> {} // a seek only
        }
        offsets.forEach((partition, offset) -> {
            if (offset != null) consumer.seek(partition, offset);
        });
    }

    /** Returns the runs of records from one partition: topic, partition, count, first and last offset; and the first and last timestamp. */
    private Map<String, Object> describe() {
        List<Object> runs = new ArrayList<>();
        int start = 0;
        for (int i = 1; i <= batch.size(); i++) {
            ConsumerRecord<byte[], byte[]> first = batch.get(start);
            if (i < batch.size() && first.partition() == batch.get(i).partition() && first.topic().equals(batch.get(i).topic())) continue;
            runs.add(List.of(first.topic(), first.partition(), i - start, first.offset(), batch.get(i - 1).offset()));
            start = i;
        }
        List<Object> times = new ArrayList<>();
        if (!batch.isEmpty()) {
            times.add(timestamp(batch.get(0)));
            times.add(timestamp(batch.get(batch.size() - 1)));
        }
        Map<String, Object> described = new HashMap<>(Map.of("runs", runs, "times", times));
        long now = System.currentTimeMillis();
        if (now >= metricsDue) {
            metricsDue = now + METRICS_MILLISECONDS;
            described.put("metrics", metrics());
        }
        return described;
    }

    /** Returns the consumer's metrics of fetches: for the consumer and for each partition tags, and values by name. */
    private List<Object> metrics() {
        Map<Map<String, String>, Map<String, Object>> byTags = new HashMap<>();
        consumer.metrics().forEach((name, metric) -> {
            boolean wanted = name.group().equals(FETCHES) && (name.tags().containsKey("partition") || !name.tags().containsKey("topic"));
            if (wanted && metric.metricValue() instanceof Double value && Double.isFinite(value))
                byTags.computeIfAbsent(name.tags(), tags -> new HashMap<>()).put(name.name(), value);
        });
        List<Object> found = new ArrayList<>();
        byTags.forEach((tags, values) -> found.add(List.of(tags, values)));
        return found;
    }

    private static Long timestamp(ConsumerRecord<byte[], byte[]> record) {
        return record.timestampType() == TimestampType.NO_TIMESTAMP_TYPE ? null : (Long) record.timestamp();
    }

    private static TopicPartition partition(ConsumerRecord<byte[], byte[]> record) {
        return new TopicPartition(record.topic(), record.partition());
    }
}
