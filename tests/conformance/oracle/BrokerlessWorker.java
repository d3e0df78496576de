import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.connector.policy.AllConnectorClientConfigOverridePolicy;
import org.apache.kafka.connect.connector.policy.ConnectorClientConfigOverridePolicy;
import org.apache.kafka.connect.runtime.ConnectMetrics;
import org.apache.kafka.connect.runtime.Worker;
import org.apache.kafka.connect.runtime.isolation.Plugins;
import org.apache.kafka.connect.runtime.rest.entities.ConfigInfos;
import org.apache.kafka.connect.runtime.standalone.StandaloneConfig;
import org.apache.kafka.connect.runtime.standalone.StandaloneHerder;
import org.apache.kafka.connect.storage.MemoryOffsetBackingStore;
import org.apache.kafka.connect.util.FutureCallback;

/** A standalone worker with its herder, of which nothing is started and nothing asks a broker. */
final class BrokerlessWorker {
    private static final String CLUSTER = "conformance";
    private static final Map<String, String> PROPERTIES = Map.of(
            "bootstrap.servers", "localhost:9092",
            "key.converter", "org.apache.kafka.connect.json.JsonConverter",
            "value.converter", "org.apache.kafka.connect.json.JsonConverter",
            "offset.storage.file.filename", "/dev/null");

    private final Plugins plugins = new Plugins(PROPERTIES);
    private final ConnectorClientConfigOverridePolicy policy = new AllConnectorClientConfigOverridePolicy();
    private final Worker worker;

    BrokerlessWorker() {
        plugins.compareAndSwapWithDelegatingLoader();
        worker = new Worker("worker", Time.SYSTEM, plugins, new Config(), new NoOffsets(), policy);
    }

    Plugins plugins() {
        return plugins;
    }

    ConnectMetrics metrics() {
        return worker.metrics();
    }

    JsonNode ask(JsonNode question) {
        String operation = question.get("op").asText();
        ObjectNode answer = Oracle.JSON.createObjectNode();
        // A herder of its own, on a thread with the right class loader: after some errors Connect leaves another one behind.
        plugins.compareAndSwapWithDelegatingLoader();
        StandaloneHerder herder = new StandaloneHerder(worker, CLUSTER, policy);
        try {
            if (operation.equals("plugin_config")) {
                return answer.set("config_keys", Oracle.JSON.valueToTree(herder.connectorPluginConfig(question.get("plugin").asText())));
            }
            FutureCallback<ConfigInfos> told = new FutureCallback<>();
            herder.validateConnectorConfig(Oracle.properties(question.get("config")), told, false);
            ObjectNode result = Oracle.JSON.valueToTree(told.get());
            return answer.set("result", question.path("form").asText().equals("values") ? valuesOnly(result) : result);
        } catch (ExecutionException error) {
            return Errors.at(operation, (Exception) error.getCause());
        } catch (Exception error) {
            return Errors.at(operation, error);
        }
    }

    private static ObjectNode valuesOnly(ObjectNode result) {
        ArrayNode configs = Oracle.JSON.createArrayNode();
        for (JsonNode config : result.get("configs")) {
            configs.add(((ObjectNode) config.get("value")).without("recommended_values"));
        }
        return result.set("configs", configs);
    }

    private static final class Config extends StandaloneConfig {
        Config() {
            super(PROPERTIES);
        }

        @Override
        public String kafkaClusterId() {
            return CLUSTER;
        }
    }

    private static final class NoOffsets extends MemoryOffsetBackingStore {
        @Override
        public Set<Map<String, Object>> connectorPartitions(String connector) {
            return Set.of();
        }
    }
}
