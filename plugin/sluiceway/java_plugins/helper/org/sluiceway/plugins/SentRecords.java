package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.ConcurrentSkipListMap;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Calls a source task's {@code commitRecord}, in the order in which Kafka acknowledges its records. Runs on a thread of its own, as
 * Connect's producer does, so that a {@code poll} can wait for it. The task's thread adds the records.
 */
final class SentRecords implements Hosted {
    private static final Logger LOG = LoggerFactory.getLogger(SentRecords.class);

    private final SourceTask task;
    private final ConcurrentSkipListMap<Integer, Batch> batches = new ConcurrentSkipListMap<>();
    private volatile boolean inTransactions;
    private long handled;

    SentRecords(SourceTask task) {
        this.task = task;
    }

    /** Some records of a task that aborts transactions are never acknowledged: not those before any that are. */
    void inTransactions() {
        inTransactions = true;
    }

    void add(int number, List<SourceRecord> records) {
        batches.put(number, new Batch(records));
    }

    /**
     * Acknowledges records. The body has four longs for each: the number of its batch, its index there, and its partition and offset,
     * -1 for a record that was left out.
     */
    @Override
    public Answer call(String method, JsonNode args, ByteBuffer body) {
        try {
            while (body.hasRemaining()) acknowledge((int) body.getLong(), (int) body.getLong(), (int) body.getLong(), body.getLong());
        } finally {
            synchronized (this) {
                handled++;
                notifyAll();
            }
        }
        return Answer.NONE;
    }

    /** Waits until this many calls have been handled. */
    synchronized void await(long calls) throws InterruptedException {
        while (handled < calls) wait();
    }

    private void acknowledge(int number, int index, int partition, long offset) {
        if (inTransactions) batches.headMap(number).clear();
        Batch batch = batches.get(number);
        if (--batch.left == 0) batches.remove(number);
        SourceRecord record = batch.records.get(index);
        RecordMetadata metadata = partition < 0
            ? null : new RecordMetadata(new TopicPartition(record.topic(), partition), offset, 0, timestamp(record), -1, -1);
        try {
            task.commitRecord(record, metadata);
        } catch (Throwable error) { // as in Connect, it does not fail the task
            LOG.error("Exception thrown while calling task.commitRecord()", error);
        }
    }

    private static long timestamp(SourceRecord record) {
        return record.timestamp() == null ? -1 : record.timestamp();
    }

    private static final class Batch {
        private final List<SourceRecord> records;
        private int left;

        Batch(List<SourceRecord> records) {
            this.records = records;
            left = records.size();
        }
    }
}
