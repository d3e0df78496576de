package org.sluiceway.plugins;

import java.util.LinkedHashMap;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.MetricValueProvider;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.common.metrics.Sensor;

/** Holds the metrics that a plugin registers (KIP-877), because plugins expect to get an object. Nothing reports them. */
final class LocalMetrics implements PluginMetrics {
    private final Metrics metrics = new Metrics();

    @Override
    public MetricName metricName(String name, String description, LinkedHashMap<String, String> tags) {
        return metrics.metricName(name, "plugins", description, tags);
    }

    @Override
    public void addMetric(MetricName name, MetricValueProvider<?> value) {
        metrics.addMetric(name, value);
    }

    @Override
    public void removeMetric(MetricName name) {
        metrics.removeMetric(name);
    }

    @Override
    public Sensor addSensor(String name) {
        return metrics.sensor(name);
    }

    @Override
    public void removeSensor(String name) {
        metrics.removeSensor(name);
    }
}
