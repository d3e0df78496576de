package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Successive transforms of a chain whose other stages run in Python, or a predicate of one of those. */
final class TransformsObject<R extends ConnectRecord<R>> implements Hosted {
    private final Values values = new Values();
    private final Chain<R> chain;
    private final Predicate<R> predicate;

    @SuppressWarnings("unchecked")
    TransformsObject(Calls python, JsonNode args) throws Exception {
        chain = new Chain<>(args);
        predicate = args.hasNonNull("predicate") ? Loaders.create(args.get("predicate").get("plugin"), Predicate.class) : null;
        if (predicate != null) predicate.configure(Loaders.texts(args.get("predicate").get("config")));
    }

    @Override
    public Answer call(String method, JsonNode args, ByteBuffer body) throws Exception {
        if (method.equals("close")) {
            chain.close();
            Chain.quietly(predicate);
            return Answer.NONE;
        }
        values.open(body);
        List<R> records = records(args.path("sink").asBoolean());
        values.begin().list(records.size());
        for (R record : records) {
            int start = values.position();
            try {
                if (method.equals("test")) values.write(predicate.test(record));
                else write(record, chain.transform(record));
            } catch (Exception error) {
                values.rewind(start).tuple(2).write(chain.step).write(Host.describe(error));
            }
        }
        return new Answer(null, values.end());
    }

    @SuppressWarnings("unchecked")
    private List<R> records(boolean sink) {
        int count = values.count();
        List<R> records = new ArrayList<>(count);
        for (int i = 0; i < count; i++) records.add((R) (sink ? Rows.sink(values) : Rows.source(values)));
        return records;
    }

    private void write(R before, R after) {
        if (after == null) values.write(null);
        else Rows.write(values, after, position(before, after));
    }

    /** Returns the source partition and offset of a record if a transform has changed them. */
    private static Object position(ConnectRecord<?> before, ConnectRecord<?> after) {
        if (!(before instanceof SourceRecord first) || !(after instanceof SourceRecord last)) return null;
        boolean same = Objects.equals(first.sourcePartition(), last.sourcePartition()) && Objects.equals(first.sourceOffset(), last.sourceOffset());
        return same ? null : Arrays.asList(last.sourcePartition(), last.sourceOffset());
    }
}
