package org.sluiceway.plugins;

import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.header.Headers;
import org.apache.kafka.connect.runtime.InternalSinkRecord;
import org.apache.kafka.connect.runtime.errors.ProcessingContext;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;

/** Reads and writes records as rows of values; records.py is the other side. */
final class Rows {
    private static final TimestampType[] TYPES = {TimestampType.NO_TIMESTAMP_TYPE, TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME};

    static SourceRecord source(Values in) {
        in.count();
        String topic = in.text();
        Integer partition = in.optionalInteger();
        Schema keySchema = in.schema();
        Object key = in.read(keySchema);
        Schema valueSchema = in.schema();
        Object value = in.read(valueSchema);
        Long timestamp = (Long) in.read(null);
        Headers headers = in.headers();
        Map<String, Object> sourcePartition = in.map();
        return new SourceRecord(sourcePartition, in.map(), topic, partition, keySchema, key, valueSchema, value, timestamp, headers);
    }

    static SinkRecord sink(Values in) {
        in.count();
        String topic = in.text();
        Integer partition = in.optionalInteger();
        Schema keySchema = in.schema();
        Object key = in.read(keySchema);
        Schema valueSchema = in.schema();
        Object value = in.read(valueSchema);
        Long timestamp = (Long) in.read(null);
        Headers headers = in.headers();
        long offset = (Long) in.read(null);
        TimestampType type = TYPES[in.integer()];
        String originalTopic = in.text();
        int originalPartition = in.integer();
        long originalOffset = (Long) in.read(null);
        SinkRecord record = new SinkRecord(topic, partition, keySchema, key, valueSchema, value, offset, timestamp, type, headers,
            originalTopic, originalPartition, originalOffset);
        return in.skipNull() ? record : kept(record, message(in, originalTopic, originalPartition));
    }

    /** Reads a message as it was consumed: offset, (timestamp type, timestamp), key, value, headers or None. */
    static ConsumerRecord<byte[], byte[]> message(Values in, String topic, int partition) {
        in.count();
        long offset = (Long) in.read(null);
        in.count();
        TimestampType type = TYPES[in.integer()];
        long timestamp = (Long) in.read(null);
        byte[] key = (byte[]) in.read(null);
        byte[] value = (byte[]) in.read(null);
        RecordHeaders headers = new RecordHeaders();
        for (int count = in.skipNull() ? 0 : in.count(); count > 0; count--) {
            in.count();
            headers.add(in.text(), (byte[]) in.read(null));
        }
        return new ConsumerRecord<>(topic, partition, offset, timestamp, type, -1, -1, key, value, headers, java.util.Optional.empty());
    }

    /** Returns a record that knows its message, as Connect gives to tasks that may report it. */
    static SinkRecord kept(SinkRecord record, ConsumerRecord<byte[], byte[]> message) {
        return new InternalSinkRecord(new ProcessingContext<>(message), record);
    }

    static void write(Values out, ConnectRecord<?> record, Object rest) {
        out.list(9).write(record.topic()).write(record.kafkaPartition());
        out.write(record.keySchema(), record.key()).write(record.valueSchema(), record.value());
        out.write(record.timestamp()).writeHeaders(record.headers()).write(rest, true);
    }

    private Rows() {}
}
