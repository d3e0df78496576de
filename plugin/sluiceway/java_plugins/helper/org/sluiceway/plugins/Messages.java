package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;

/** Consumed messages in columns; messages.py, which writes them, describes the layout. They are read in their order. */
final class Messages implements Iterator<ConsumerRecord<byte[], byte[]>> {
    private static final TimestampType[] TYPES = {TimestampType.NO_TIMESTAMP_TYPE, TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME};

    private final ByteBuffer data;
    private final JsonNode runs;
    private final int count;
    private int index;
    private int run = -1;
    private int left;
    private String topic;
    private int partition;
    private final int[] at = new int[3]; // of the next key, value and headers

    /** {@code runs} are topics, partitions, and numbers of messages. The data must stay unchanged. */
    Messages(JsonNode runs, ByteBuffer data) {
        this.runs = runs;
        this.data = data;
        int sum = 0;
        for (JsonNode each : runs) sum += each.get(2).asInt();
        count = sum;
        int column = data.position() + 20 * count;
        at[0] = column + 12 * count;
        for (int i = 1; i < at.length; i++) {
            at[i] = at[i - 1];
            for (int record = 0; record < count; record++) at[i] += Math.max(0, data.getInt(column + 4 * record));
            column += 4 * count;
        }
    }

    @Override
    public boolean hasNext() {
        return index < count;
    }

    @Override
    public ConsumerRecord<byte[], byte[]> next() {
        for (; left == 0; left = runs.get(run).get(2).asInt()) {
            run++;
            topic = runs.get(run).get(0).asText();
            partition = runs.get(run).get(1).asInt();
        }
        left--;
        int start = data.position();
        long offset = data.getLong(start + 8 * index);
        long timestamp = data.getLong(start + 8 * (count + index));
        TimestampType type = TYPES[data.getInt(start + 16 * count + 4 * index)];
        byte[] key = bytes(0);
        byte[] value = bytes(1);
        RecordHeaders headers = headers(bytes(2));
        index++;
        return new ConsumerRecord<>(topic, partition, offset, timestamp, type, -1, -1, key, value, headers, Optional.empty());
    }

    private byte[] bytes(int column) {
        int length = data.getInt(data.position() + 20 * count + 4 * (column * count + index));
        if (length < 0) return null;
        byte[] bytes = new byte[length];
        data.get(at[column], bytes);
        at[column] += length;
        return bytes;
    }

    private static RecordHeaders headers(byte[] packed) {
        RecordHeaders headers = new RecordHeaders();
        if (packed == null) return headers;
        ByteBuffer in = ByteBuffer.wrap(packed).order(java.nio.ByteOrder.LITTLE_ENDIAN);
        while (in.hasRemaining()) {
            byte[] name = new byte[in.getInt()];
            in.get(name);
            int length = in.getInt();
            byte[] value = length < 0 ? null : new byte[length];
            if (value != null) in.get(value);
            headers.add(new String(name, StandardCharsets.UTF_8), value);
        }
        return headers;
    }
}
