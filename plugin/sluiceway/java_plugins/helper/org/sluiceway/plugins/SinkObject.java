package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/**
 * A sink task. Its records come as values, or as consumed messages that are converted and transformed here, and put if none of them
 * fails. The messages come from Python, or Python calls read and then fetched. Retries, tolerance and offset commits are Python's: convert
 * stops at the first message that fails, and Python calls it again or skips the message; then it calls put.
 */
final class SinkObject implements Hosted {
    private final SinkTask task;
    private final SinkContext context;
    private final Values values = new Values();
    private final Chain<SinkRecord> chain;
    private final boolean keep;
    private final boolean skips;
    private List<SinkRecord> records = new ArrayList<>();
    private final Map<String, String> consumer;
    private PartitionReader reader;
    private Kept kept;
    private Iterator<ConsumerRecord<byte[], byte[]>> messages;
    private int index;
    private ConsumerRecord<byte[], byte[]> message;

    SinkObject(Calls python, JsonNode args) throws Exception {
        keep = args.path("reports").asBoolean();
        skips = args.path("chain").path("skips").asBoolean();
        chain = args.hasNonNull("chain") ? new Chain<>(args.get("chain")) : null;
        task = Loaders.create(args.get("plugin"), SinkTask.class);
        Map<String, String> config = Loaders.texts(args.get("config"));
        context = new SinkContext(python, config, keep, chain);
        consumer = Loaders.texts(args.path("consumer"));
        task.initialize(context);
    }

    @Override
    public Answer call(String method, JsonNode args, ByteBuffer body) throws Exception {
        switch (method) {
            case "start" -> task.start(context.configs());
            case "open" -> {
                context.assigned.addAll(partitions(args));
                task.open(partitions(args));
            }
            case "close" -> {
                task.close(partitions(args));
                context.assigned.removeAll(partitions(args));
            }
            case "drop" -> {
                Set<TopicPartition> lost = partitions(args);
                records.removeIf(each -> lost.contains(new TopicPartition(each.originalTopic(), each.originalKafkaPartition())));
                return Answer.of(records.size());
            }
            case "values" -> {
                values.open(body);
                records = new ArrayList<>();
                for (int count = values.count(); count > 0; count--) records.add(Rows.sink(values));
                task.put(records);
            }
            case "messages" -> {
                Answer converted = convert(new Messages(args, body));
                return converted.header() instanceof Integer ? put() : converted;
            }
            case "read" -> {
                if (reader == null) reader = new PartitionReader(consumer);
                kept = null; // what was kept is read again
                return Answer.of(reader.read(args.get("changes"), args.get("milliseconds").asLong(), args.get("most").asInt()));
            }
            case "fetched" -> {
                return fetched(partitions(args.get("without")), args.get("most").asInt(), args.get("milliseconds").asLong());
            }
            case "convert" -> {
                return convert();
            }
            case "skip" -> {
                message = null;
                index++;
                return convert();
            }
            case "put" -> {
                return put();
            }
            case "preCommit" -> {
                return Answer.of(preCommit(args));
            }
            case "stop" -> {
                LocalMetrics.log();
                task.stop();
                if (chain != null) chain.close();
                if (reader != null) reader.close();
            }
            default -> throw new IllegalArgumentException("Unknown method " + method);
        }
        return Answer.NONE;
    }

    /**
     * Puts the batch that was read last, and those that follow as long as there are records and time, and the task requests nothing.
     * So one crossing serves many batches. What goes wrong with a later batch is kept until Python asks for that batch.
     */
    private Answer fetched(Set<TopicPartition> without, int most, long milliseconds) throws Exception {
        Kept before = without.isEmpty() ? kept : null;
        kept = null;
        List<ConsumerRecord<byte[], byte[]>> batch = reader.take(without);
        if (before != null) return before.again(context);
        long end = System.currentTimeMillis() + milliseconds;
        context.takeRequested();
        Answer first = convert(batch.iterator());
        if (!(first.header() instanceof Integer)) return first;
        Object count = put().header();
        List<Object> more = new ArrayList<>();
        Map<String, Object> ahead = Map.of();
        while (!context.takeRequested()) {
            ahead = reader.readAhead(end - System.currentTimeMillis(), most);
            if (System.currentTimeMillis() >= end || (batch = reader.take(Set.of())).isEmpty()) break;
            long began = System.nanoTime();
            try {
                Answer converted = convert(batch.iterator());
                if (!(converted.header() instanceof Integer)) kept = new Kept(converted, null, null);
                else more.add(Map.of("messages", ahead, "records", put().header(), "seconds", (System.nanoTime() - began) / 1e9));
                if (kept == null) ahead = Map.of();
            } catch (Exception error) {
                kept = new Kept(null, error, context.requestedTimeout());
            }
            if (kept != null) {
                reader.putBack(batch);
                break;
            }
        }
        return Answer.of(Map.of("count", count, "more", more, "ahead", ahead));
    }

    /**
     * The outcome of a batch that Python has not asked for: failures of its conversion, or the error of its put, and the timeout that the
     * task requested before the error.
     */
    private record Kept(Answer failures, Exception error, Long timeout) {
        Answer again(SinkContext context) throws Exception {
            if (timeout != null) context.timeout(timeout); // Python has used it for its read
            if (error != null) throw error;
            return failures;
        }
    }

    private Answer convert(Iterator<ConsumerRecord<byte[], byte[]>> next) {
        messages = next;
        records = new ArrayList<>(500);
        index = 0;
        message = null;
        return convert();
    }

    /**
     * Converts and transforms messages up to the end or the first that fails; then says which, where and why. A task that skips such
     * messages goes on after them.
     */
    private Answer convert() {
        List<Object> failures = new ArrayList<>();
        while (failures.size() < (skips ? SourceObject.MOST_SKIPPED : 1) && next()) {
            try {
                SinkRecord record = chain.transform(converted());
                if (record != null) records.add(keep ? Rows.kept(record, message) : record);
            } catch (Exception error) {
                Map<String, Object> failure = new LinkedHashMap<>(Host.describe(error));
                failure.put("index", index);
                failure.put("stage", chain.stage);
                failure.put("by", chain.by());
                failure.put("alias", chain.alias());
                if (reader != null) failure.put("consumed", SinkContext.message(message)); // Python does not have it
                failures.add(failure);
                if (!skips) break;
            }
            message = null;
            index++;
        }
        if (failures.isEmpty()) return Answer.of(records.size());
        return Answer.of(Map.of("failures", failures, "count", records.size(), "more", message != null || messages.hasNext()));
    }

    /** Reads the next message, unless the last one is to be converted again. */
    private boolean next() {
        if (message == null && messages.hasNext()) message = messages.next();
        return message != null;
    }

    private Answer put() {
        task.put(records);
        int count = records.size();
        records = new ArrayList<>();
        return Answer.of(count);
    }

    private SinkRecord converted() {
        String topic = message.topic();
        chain.at("KEY_CONVERTER", chain.key);
        SchemaAndValue key = chain.keys.read(topic, message.headers(), message.key());
        chain.at("VALUE_CONVERTER", chain.value);
        SchemaAndValue value = chain.values.read(topic, message.headers(), message.value());
        chain.at("HEADER_CONVERTER", chain.header);
        ConnectHeaders headers = new ConnectHeaders();
        for (Header each : message.headers()) headers.add(each.key(), chain.header.toConnectHeader(topic, each.key(), each.value()));
        TimestampType type = message.timestampType();
        Long timestamp = type == TimestampType.NO_TIMESTAMP_TYPE || message.timestamp() < 0 ? null : (Long) message.timestamp();
        return new SinkRecord(topic, message.partition(), key.schema(), key.value(), value.schema(), value.value(), message.offset(),
            timestamp, type, headers);
    }

    private List<List<Object>> preCommit(JsonNode args) {
        Map<TopicPartition, OffsetAndMetadata> current = new HashMap<>();
        for (JsonNode each : args) {
            TopicPartition where = new TopicPartition(each.get(0).asText(), each.get(1).asInt());
            current.put(where, new OffsetAndMetadata(each.get(2).asLong()));
        }
        Map<TopicPartition, OffsetAndMetadata> safe = task.preCommit(current);
        List<List<Object>> answer = new ArrayList<>();
        if (safe != null) safe.forEach((where, offset) -> answer.add(List.of(where.topic(), where.partition(), offset.offset())));
        return answer;
    }

    private static Set<TopicPartition> partitions(JsonNode args) {
        Set<TopicPartition> partitions = new HashSet<>();
        for (JsonNode each : args) partitions.add(new TopicPartition(each.get(0).asText(), each.get(1).asInt()));
        return partitions;
    }
}
