package org.sluiceway.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.ConfigData;
import org.apache.kafka.common.config.provider.ConfigProvider;

/** A config provider. Its values go to Python, which puts them into configs. */
final class ProviderObject implements Hosted {
    private final ConfigProvider provider;

    ProviderObject(JsonNode args) throws Exception {
        provider = Loaders.create(args.get("plugin"), ConfigProvider.class);
        provider.configure(Loaders.texts(args.get("params")));
    }

    @Override
    public Answer call(String method, JsonNode args, ByteBuffer body) throws Exception {
        if (!method.equals("get")) throw new IllegalArgumentException("A config provider has no method " + method);
        try (provider) {
            Set<String> keys = new LinkedHashSet<>();
            for (JsonNode key : args.get("keys")) keys.add(key.asText());
            ConfigData found = provider.get(args.get("path").asText(), keys);
            Map<String, Object> answer = new HashMap<>();
            answer.put("values", found.data());
            answer.put("ttl", found.ttl());
            return Answer.of(answer);
        }
    }
}
