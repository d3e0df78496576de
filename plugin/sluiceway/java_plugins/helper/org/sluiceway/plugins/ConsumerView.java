package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** The consumer of a sink task, as far as tasks use it that read it from Connect's context. Python has the real one. */
final class ConsumerView {
    final Set<TopicPartition> assigned = ConcurrentHashMap.newKeySet();
    private final Hosted.Calls python;

    ConsumerView(Hosted.Calls python) {
        this.python = python;
    }

    @SuppressWarnings("unchecked")
    Consumer<byte[], byte[]> consumer() {
        return (Consumer<byte[], byte[]>) Proxy.newProxyInstance(ConsumerView.class.getClassLoader(), new Class<?>[] {Consumer.class}, this::call);
    }

    @SuppressWarnings("unchecked")
    private Object call(Object proxy, Method method, Object[] arguments) {
        switch (method.getName()) {
            case "groupMetadata":
                return group();
            case "assignment":
                return Set.copyOf(assigned);
            case "committed":
                return committed((Set<TopicPartition>) arguments[0]);
            case "seek":
                long offset = arguments[1] instanceof OffsetAndMetadata place ? place.offset() : (Long) arguments[1];
                seek(Map.of((TopicPartition) arguments[0], offset));
                return null;
            case "toString":
                return "the consumer of a sink task";
            default:
                throw new UnsupportedOperationException("Sink tasks cannot call the consumer's " + method.getName() + "()");
        }
    }

    @SuppressWarnings("removal") // the constructor, which Kafka makes private in 5.0
    private ConsumerGroupMetadata group() {
        JsonNode group = python.call("group", null);
        Optional<String> instance = Optional.ofNullable(group.path("instance").asText(null));
        return new ConsumerGroupMetadata(group.get("id").asText(), group.get("generation").asInt(), group.get("member").asText(), instance);
    }

    private Map<TopicPartition, OffsetAndMetadata> committed(Set<TopicPartition> partitions) {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>();
        partitions.forEach(each -> found.put(each, null));
        for (JsonNode each : python.call("committed", rows(partitions)))
            found.put(new TopicPartition(each.get(0).asText(), each.get(1).asInt()), new OffsetAndMetadata(each.get(2).asLong()));
        return found;
    }

    /** Requests that these partitions are read from these offsets, before the next records. */
    void seek(Map<TopicPartition, Long> offsets) {
        List<Object> rows = new ArrayList<>();
        offsets.forEach((where, offset) -> rows.add(List.of(where.topic(), where.partition(), offset)));
        python.call("offset", rows);
    }

    static List<Object> rows(Iterable<TopicPartition> partitions) {
        List<Object> rows = new ArrayList<>();
        for (TopicPartition each : partitions) rows.add(List.of(each.topic(), each.partition()));
        return rows;
    }
}
