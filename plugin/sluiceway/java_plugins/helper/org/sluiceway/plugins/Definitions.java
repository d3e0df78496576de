package org.sluiceway.plugins;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigValue;

/** Describes the config definitions and validation results of plugins for Python. Values are texts, as Connect's REST API shows them. */
final class Definitions {
    static List<Object> of(ConfigDef definition) {
        List<Object> keys = new ArrayList<>();
        if (definition == null) return keys;
        for (ConfigDef.ConfigKey key : definition.configKeys().values()) {
            Map<String, Object> described = new LinkedHashMap<>();
            described.put("name", key.name);
            described.put("type", key.type.name());
            described.put("required", !key.hasDefault());
            described.put("default", key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null);
            described.put("importance", key.importance.name());
            described.put("doc", key.documentation);
            described.put("group", key.group);
            described.put("order", key.orderInGroup);
            described.put("width", key.width.name());
            described.put("display_name", key.displayName);
            described.put("dependents", key.dependents);
            described.put("internal", key.internalConfig);
            described.put("validated", key.validator != null);
            described.put("recommends", key.recommender != null);
            keys.add(described);
        }
        return keys;
    }

    static List<Object> values(ConfigDef definition, List<ConfigValue> values) {
        List<Object> described = new ArrayList<>();
        for (ConfigValue value : values) {
            ConfigDef.ConfigKey key = definition.configKeys().get(value.name());
            ConfigDef.Type type = key == null ? null : key.type;
            List<String> recommended = new ArrayList<>();
            for (Object each : value.recommendedValues()) recommended.add(text(each, type == ConfigDef.Type.LIST ? ConfigDef.Type.STRING : type));
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("name", value.name());
            one.put("value", text(value.value(), type));
            one.put("recommended", recommended);
            one.put("errors", value.errorMessages());
            one.put("visible", value.visible());
            described.add(one);
        }
        return described;
    }

    static String text(Object value, ConfigDef.Type type) {
        return value == null || type == null ? (value == null ? null : value.toString()) : ConfigDef.convertToString(value, type);
    }

    private Definitions() {}
}
