package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import org.apache.kafka.connect.source.SourceTask;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Calls a source task's {@code commit}, on a thread of its own, as Connect does: neither {@code poll} nor {@code commitRecord} waits
 * for it. The records whose offsets are stored have been acknowledged to the task before.
 */
final class OffsetCommits implements Hosted {
    private static final Logger LOG = LoggerFactory.getLogger(OffsetCommits.class);

    private final SourceTask task;
    private final SentRecords sent;

    OffsetCommits(SourceTask task, SentRecords sent) {
        this.task = task;
        this.sent = sent;
    }

    /** Commits after this many calls of {@code SentRecords} have been handled. */
    @Override
    public Answer call(String method, JsonNode args, ByteBuffer body) throws InterruptedException {
        sent.await(args.get("after").asLong());
        try {
            task.commit();
        } catch (Throwable error) { // as in Connect, it does not fail the task: the offsets are stored
            LOG.error("Exception thrown while calling task.commit()", error);
        }
        return Answer.NONE;
    }
}
