package org.sluiceway.plugins;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;

/**
 * Packs converted records into one buffer, little endian: columns of ints with one item a record (source, topic, partition, length
 * of key, value and headers; -1 stands for null), a column of longs (timestamp), then key, value and headers of each record.
 * A header is the length of its name, the name, the length of its value, the value. The buffer is reused by the next batch.
 */
final class Packer {
    static final long NO_TIMESTAMP = Long.MIN_VALUE;
    private static final int COLUMNS = 6;

    private final Map<String, Integer> topics = new LinkedHashMap<>();
    private int[][] columns = new int[COLUMNS][1024];
    private long[] timestamps = new long[1024];
    private byte[] bytes = new byte[1 << 20];
    private ByteBuffer out = ByteBuffer.allocateDirect(1 << 20);
    private int records;
    private int used;
    private String topic;
    private int topicIndex;

    void clear() {
        topics.clear();
        topic = null;
        records = 0;
        used = 0;
    }

    int records() {
        return records;
    }

    int size() {
        return used;
    }

    List<String> topics() {
        return new ArrayList<>(topics.keySet());
    }

    void add(int source, String toTopic, Integer partition, Long timestamp, byte[] key, byte[] value, Headers headers) {
        if (records == timestamps.length) grow();
        if (!toTopic.equals(topic)) {
            topic = toTopic;
            topicIndex = topics.computeIfAbsent(toTopic, name -> topics.size());
        }
        columns[0][records] = source;
        columns[1][records] = topicIndex;
        columns[2][records] = partition == null ? -1 : partition;
        columns[3][records] = put(key);
        columns[4][records] = put(value);
        columns[5][records] = put(headers);
        timestamps[records++] = timestamp == null ? NO_TIMESTAMP : timestamp;
    }

    /** Returns the packed records; valid until {@code clear}. */
    ByteBuffer pack() {
        int size = records * (4 * COLUMNS + 8) + used;
        if (out.capacity() < size) out = ByteBuffer.allocateDirect(Math.max(size, 2 * out.capacity()));
        out.clear().order(ByteOrder.LITTLE_ENDIAN);
        for (int[] column : columns) {
            out.asIntBuffer().put(column, 0, records);
            out.position(out.position() + 4 * records);
        }
        out.asLongBuffer().put(timestamps, 0, records);
        out.position(out.position() + 8 * records);
        return out.put(bytes, 0, used).flip();
    }

    private void grow() {
        for (int i = 0; i < COLUMNS; i++) columns[i] = Arrays.copyOf(columns[i], 2 * records);
        timestamps = Arrays.copyOf(timestamps, 2 * records);
    }

    private int put(byte[] data) {
        if (data == null) return -1;
        if (bytes.length - used < data.length) bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, used + data.length));
        System.arraycopy(data, 0, bytes, used, data.length);
        used += data.length;
        return data.length;
    }

    private int put(Headers headers) {
        int start = used;
        for (Header each : headers) {
            byte[] name = each.key().getBytes(StandardCharsets.UTF_8);
            put(number(name.length));
            put(name);
            put(number(each.value() == null ? -1 : each.value().length));
            put(each.value());
        }
        return used - start;
    }

    private static byte[] number(int number) {
        return new byte[] {(byte) number, (byte) (number >> 8), (byte) (number >> 16), (byte) (number >> 24)};
    }
}
