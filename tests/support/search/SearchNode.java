import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** Runs one node of OpenSearch from its jars, with HTTP; the first argument is its home, the others are settings as name=value. */
public final class SearchNode extends Node {
    private SearchNode(Environment environment) {
        super(environment, List.of(Netty4Plugin.class), true);
    }

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]);
        Settings.Builder settings = Settings.builder().put("path.home", home).put("path.data", home.resolve("data")).put("path.logs", home.resolve("logs"));
        for (int each = 1; each < arguments.length; each++) {
            String[] pair = arguments[each].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        SearchNode node = new SearchNode(InternalSettingsPreparer.prepareEnvironment(settings.build(), Map.of(), home.resolve("config"), () -> "node"));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
            } catch (Exception error) {
                error.printStackTrace();
            }
        }));
        node.start();
        Thread.currentThread().join();
    }
}
