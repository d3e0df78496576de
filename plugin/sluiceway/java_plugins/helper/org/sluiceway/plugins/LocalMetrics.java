package org.sluiceway.plugins;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;

/** The metrics that plugins register (KIP-877), with the group and tags that Connect gives them. */
final class LocalMetrics {
    private static final String GROUP = "plugins";
    private static final Metrics METRICS = new Metrics();
    private static final Pattern CONTEXT = Pattern.compile("\\[(.*)\\|(?:task-(\\d+)|worker)] ", Pattern.DOTALL);

    /** Returns the metrics of the calling thread's connector or task. */
    static PluginMetrics ofTask() {
        return new PluginMetricsImpl(METRICS, tags());
    }

    /** Gives a transform, predicate, or converter its metrics, if it wants any. The tag is Connect's for this kind of plugin. */
    static void offer(Object plugin, String tag, String value) {
        if (!(plugin instanceof Monitorable monitorable)) return;
        Map<String, String> tags = tags();
        tags.put(tag, value);
        monitorable.withPluginMetrics(new PluginMetricsImpl(METRICS, tags));
    }

    private static Map<String, String> tags() {
        Map<String, String> tags = new LinkedHashMap<>();
        String context = MDC.get("connector.context");
        Matcher parts = CONTEXT.matcher(context == null ? "" : context);
        if (!parts.matches()) return tags;
        tags.put("connector", parts.group(1));
        if (parts.group(2) != null) tags.put("task", parts.group(2));
        return tags;
    }

    /** Returns the name, tags, description and value of each metric. A value that cannot be computed is null. */
    static List<Object> values() {
        List<Object> values = new ArrayList<>();
        for (Map.Entry<MetricName, KafkaMetric> each : METRICS.metrics().entrySet()) {
            MetricName name = each.getKey();
            if (!name.group().equals(GROUP)) continue;
            Map<String, Object> described = new LinkedHashMap<>();
            described.put("name", name.name());
            described.put("description", name.description());
            described.put("tags", name.tags());
            described.put("value", value(each.getValue()));
            values.add(described);
        }
        return values;
    }

    private static Object value(KafkaMetric metric) {
        try {
            Object value = metric.metricValue();
            if (value instanceof Double number && !Double.isFinite(number)) return null;
            return value == null || value instanceof Number || value instanceof Boolean ? value : value.toString();
        } catch (RuntimeException error) { // of a plugin's gauge
            return null;
        }
    }

    /** Logs the metrics, because nobody can read them after the process has ended. */
    static void log() {
        StringJoiner metrics = new StringJoiner(", ");
        METRICS.metrics().forEach((name, metric) -> {
            if (name.group().equals(GROUP)) metrics.add(name.name() + name.tags() + "=" + value(metric));
        });
        if (metrics.length() > 0) LoggerFactory.getLogger(LocalMetrics.class).info("Metrics of the plugins: {}", metrics);
    }

    private LocalMetrics() {}
}
