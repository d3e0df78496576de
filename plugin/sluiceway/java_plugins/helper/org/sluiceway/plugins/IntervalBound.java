package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Holds back the records of later intervals: in each source partition the first one whose timestamp is at or after the end of the run's
 * interval, unless it is from the future, and all behind it. {@code interval_bound.py} has the same rule for tasks in Python.
 */
final class IntervalBound {
    private final long end;
    private final long skew;
    private final Set<String> passed = new HashSet<>();
    private final Set<String> known = new HashSet<>();
    private List<String> seen = List.of();
    private List<String> passing = List.of();
    private int held;
    private long oldest;
    private Map<String, Object> lacking;

    IntervalBound(JsonNode interval) {
        end = interval.get("end").asLong();
        skew = interval.get("skew").asLong();
    }

    /** Returns the records of a poll that belong to this run; none if one of them lacks what that needs. */
    List<SourceRecord> kept(List<SourceRecord> polled) {
        seen = new ArrayList<>();
        passing = new ArrayList<>();
        held = 0;
        oldest = Long.MAX_VALUE;
        lacking = null;
        long latest = System.currentTimeMillis() + skew;
        List<SourceRecord> kept = new ArrayList<>(polled.size());
        Map<String, ?> last = null;
        String partition = null;
        for (SourceRecord record : polled) {
            if (record.timestamp() == null || record.sourcePartition() == null || record.sourceOffset() == null) {
                lacking = lacking(record);
                return List.of();
            }
            if (record.sourcePartition() != last) {
                last = record.sourcePartition();
                partition = Offsets.text(last);
                if (known.add(partition)) seen.add(partition);
            }
            long time = record.timestamp();
            if (end <= time && time <= latest && passed.add(partition)) passing.add(partition);
            if (passed.contains(partition)) {
                held++;
                oldest = Math.min(oldest, time);
            } else {
                kept.add(record);
            }
        }
        return kept;
    }

    /** Returns what was found in the last poll. */
    Map<String, Object> described() {
        Map<String, Object> found = new HashMap<>();
        found.put("seen", seen);
        found.put("passed", passing);
        found.put("held", held);
        found.put("oldest", oldest);
        found.put("lacking", lacking);
        return found;
    }

    private static Map<String, Object> lacking(SourceRecord record) {
        Map<String, Object> found = new HashMap<>();
        found.put("what", record.timestamp() == null ? "timestamp" : record.sourcePartition() == null ? "source partition" : "source offset");
        found.put("topic", record.topic());
        found.put("partition", Offsets.text(record.sourcePartition()));
        found.put("offset", Offsets.text(record.sourceOffset()));
        return found;
    }
}
