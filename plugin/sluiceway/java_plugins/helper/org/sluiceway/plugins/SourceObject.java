package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.runtime.WorkerTransactionContext;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.kafka.connect.source.SourceTaskContext;
import org.apache.kafka.connect.source.TransactionContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/**
 * A source task. With a chain, {@code poll} returns a batch in parts: a part ends at {@code MOST_BYTES}, at a record that ends a transaction, and
 * before a record that a transform or converter fails on. {@code pack} returns the next part, {@code skip} first leaves that record out.
 * A task that skips such records only describes them.
 * {@code ahead} polls and packs the batch that the next {@code poll} returns while Python produces the last one, so that both processes
 * work. Python requests it where the task cannot notice: see {@code traits}.
 * In the run of an interval that ends by the records' timestamps, a batch is what {@code IntervalBound} leaves of it.
 */
final class SourceObject implements Hosted {
    private static final int MOST_BYTES = 4 << 20;
    static final int MOST_SKIPPED = 200; // each is described with its stack trace

    private final SourceTask task;
    private final Chain<SourceRecord> chain;
    private final boolean skips;
    private final IntervalBound bound; // null unless the run ends by the records' timestamps
    private final boolean acknowledged;
    private final SentRecords sent;
    private final ClassLoader loader;
    private final Packer packer = new Packer();
    private final Values values = new Values();
    private Map<String, String> configs = Map.of();
    private WorkerTransactionContext transactions;
    private List<SourceRecord> batch = List.of();
    private List<SourceRecord> previous = List.of(); // that Python produces while the next batch is polled
    private int batches;
    private int next;
    private Callable<Answer> polled;

    SourceObject(Calls python, JsonNode args) throws Exception {
        task = Loaders.create(args.get("plugin"), SourceTask.class);
        chain = args.hasNonNull("chain") ? new Chain<>(args.get("chain")) : null;
        skips = args.path("chain").path("skips").asBoolean();
        bound = args.hasNonNull("interval") ? new IntervalBound(args.get("interval")) : null;
        loader = Thread.currentThread().getContextClassLoader();
        acknowledged = overrides("commitRecord", SourceRecord.class, RecordMetadata.class);
        sent = new SentRecords(task);
        task.initialize(new Context(new Offsets(python)));
    }

    private boolean overrides(String method, Class<?>... parameters) throws NoSuchMethodException {
        return task.getClass().getMethod(method, parameters).getDeclaringClass() != SourceTask.class;
    }

    /** Returns the object that acknowledges records. Call on its thread. */
    SentRecords sentRecords() {
        Thread.currentThread().setContextClassLoader(loader);
        return sent;
    }

    /** Returns the object that commits. Call on its thread. */
    OffsetCommits offsetCommits() {
        Thread.currentThread().setContextClassLoader(loader);
        return new OffsetCommits(task, sent);
    }

    @Override
    public Answer call(String method, JsonNode args, ByteBuffer body) throws Exception {
        switch (method) {
            case "traits":
                return Answer.of(Map.of("commitRecord", acknowledged, "commit", overrides("commit")));
            case "start":
                configs = Loaders.texts(args.get("config"));
                if (args.path("transactions").asBoolean()) {
                    transactions = new WorkerTransactionContext();
                    sent.inTransactions();
                }
                task.start(configs);
                return Answer.NONE;
            case "poll":
                return nextBatch();
            case "ahead":
                polled = prepared();
                return Answer.NONE;
            case "pack":
                return pack();
            case "skip":
                next++;
                return pack();
            case "offsetsBefore":
                return Answer.of(offsets(args.get("batch").asInt() == batches ? batch : previous, args.get("index").asInt()));
            case "settle": // the answer means that no poll lasts
                return Answer.NONE;
            case "stop":
                LocalMetrics.log();
                try {
                    task.stop();
                } finally {
                    if (chain != null) chain.close();
                }
                return Answer.NONE;
            default:
                throw new IllegalArgumentException("A source task has no method " + method);
        }
    }

    /** Polls, and returns what gives the outcome to the next request. */
    private Callable<Answer> prepared() {
        try {
            Answer answer = poll();
            return () -> answer;
        } catch (Throwable error) {
            return () -> {
                if (error instanceof Error fatal) throw fatal;
                throw (Exception) error;
            };
        }
    }

    /** Returns the answer that was prepared, or else polls. */
    private Answer nextBatch() throws Exception {
        Callable<Answer> prepared = polled;
        polled = null;
        Answer answer = prepared == null ? poll() : prepared.call();
        previous = List.of();
        return answer;
    }

    private Answer poll() throws InterruptedException {
        List<SourceRecord> polled;
        try {
            polled = task.poll();
        } catch (InterruptedException interrupted) { // Python asked for it because the task must stop
            polled = null;
        }
        if (polled == null) return Answer.NONE;
        if (polled.stream().anyMatch(Objects::isNull)) throw new ConnectException(task.getClass().getName() + ".poll() returned a null record");
        previous = batch;
        batch = bound == null ? polled : bound.kept(polled);
        next = 0;
        batches++;
        if (acknowledged && !batch.isEmpty()) sent.add(batches, batch);
        return chain == null ? rows() : pack();
    }

    /** Returns the batch for a chain in Python: the records as rows, and the indexes of those that end a transaction. */
    private Answer rows() {
        Map<String, Object> described = new LinkedHashMap<>();
        List<Object> actions = new ArrayList<>();
        values.begin().list(batch.size());
        for (int i = 0; i < batch.size(); i++) {
            SourceRecord record = batch.get(i);
            Rows.write(values, record, Arrays.asList(record.sourcePartition(), record.sourceOffset()));
            String action = transactions == null ? null : after(record);
            if (action != null) actions.add(List.of(i, action));
        }
        next = batch.size();
        described.put("batch", batches);
        described.put("size", batch.size());
        described.put("end", next);
        described.put("positioned", positioned());
        described.put("actions", actions);
        if (bound != null) described.put("interval", bound.described());
        if (transactions != null) described.put("batchAction", afterBatch());
        return new Answer(described, values.end());
    }

    private Answer pack() {
        int start = next;
        packer.clear();
        Map<String, Object> part = new LinkedHashMap<>();
        List<Object> skipped = new ArrayList<>();
        String action = null;
        while (next < batch.size() && packer.size() < MOST_BYTES && action == null) {
            SourceRecord record = batch.get(next);
            try {
                add(next, record);
            } catch (Exception | StackOverflowError | LinkageError error) {
                Map<String, Object> failure = Host.describe(error);
                failure.put("stage", chain.stage);
                failure.put("by", chain.by());
                failure.put("record", record.toString());
                failure.put("topic", record.topic());
                failure.put("offset", Offsets.text(record.sourceOffset()));
                if (!skips) {
                    part.put("failure", failure);
                    break;
                }
                skipped.add(failure);
                next++;
                if (skipped.size() == MOST_SKIPPED) break;
                continue;
            }
            action = transactions == null ? null : after(record);
            next++;
        }
        if (next == batch.size() && transactions != null) part.put("batchAction", afterBatch());
        part.put("batch", batches);
        part.put("size", batch.size());
        part.put("start", start);
        part.put("end", next);
        part.put("positioned", positioned());
        part.put("count", packer.records());
        part.put("topics", packer.topics());
        part.put("offsets", offsets(batch, next));
        part.put("action", action);
        part.put("skipped", skipped);
        if (bound != null) part.put("interval", bound.described());
        return new Answer(part, packer.pack());
    }

    private void add(int index, SourceRecord polled) {
        SourceRecord record = chain.transform(polled);
        if (record == null) return;
        RecordHeaders headers = new RecordHeaders();
        if (record.headers() != null && !record.headers().isEmpty()) {
            chain.at("HEADER_CONVERTER", chain.header);
            for (Header each : record.headers())
                headers.add(each.key(), chain.header.fromConnectHeader(record.topic(), each.key(), each.schema(), each.value()));
        }
        chain.at("KEY_CONVERTER", chain.key);
        byte[] key = chain.key.fromConnectData(record.topic(), headers, record.keySchema(), record.key());
        chain.at("VALUE_CONVERTER", chain.value);
        byte[] value = chain.value.fromConnectData(record.topic(), headers, record.valueSchema(), record.value());
        packer.add(index, record.topic(), record.kafkaPartition(), record.timestamp(), key, value, headers);
    }

    private String after(SourceRecord record) {
        return transactions.shouldCommitOn(record) ? "COMMIT" : transactions.shouldAbortOn(record) ? "ABORT" : null;
    }

    private String afterBatch() {
        return transactions.shouldCommitBatch() ? "COMMIT" : transactions.shouldAbortBatch() ? "ABORT" : null;
    }

    /** Returns the newest offset of each source partition among a batch's records before {@code end}, as JSON texts. */
    private static List<Object> offsets(List<SourceRecord> batch, int end) {
        Map<Map<String, ?>, Map<String, ?>> newest = new LinkedHashMap<>();
        Map<String, ?> last = null;
        for (int i = end - 1; i >= 0; i--) {
            SourceRecord record = batch.get(i);
            if (record == null || record.sourcePartition() == null || record.sourcePartition() == last) continue;
            last = record.sourcePartition();
            newest.putIfAbsent(last, record.sourceOffset());
        }
        List<Object> texts = new ArrayList<>();
        for (Map.Entry<Map<String, ?>, Map<String, ?>> each : newest.entrySet()) {
            List<String> pair = new ArrayList<>();
            pair.add(Offsets.text(each.getKey()));
            pair.add(Offsets.text(each.getValue()));
            texts.add(pair);
        }
        return texts;
    }

    /** Returns whether each record of the batch has a source offset, from which the task can read it again. */
    private boolean positioned() {
        return batch.stream().allMatch(record -> record.sourcePartition() != null && record.sourceOffset() != null);
    }

    private final class Context implements SourceTaskContext {
        private final OffsetStorageReader offsets;
        private final PluginMetrics metrics = LocalMetrics.ofTask();

        Context(OffsetStorageReader offsets) {
            this.offsets = offsets;
        }

        @Override
        public Map<String, String> configs() {
            return configs;
        }

        @Override
        public OffsetStorageReader offsetStorageReader() {
            return offsets;
        }

        @Override
        public TransactionContext transactionContext() {
            return transactions;
        }

        @Override
        public PluginMetrics pluginMetrics() {
            return metrics;
        }
    }
}
