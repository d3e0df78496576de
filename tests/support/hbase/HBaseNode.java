import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.master.HMaster;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Runs ZooKeeper, the master and a region server, and does by HTTP what HBase's Thrift server cannot: the path is a command, the
 * query its arguments, separated by commas. Keys are as HBase shows them (\x00). The first argument is the port.
 */
public final class HBaseNode {
    public static void main(String[] arguments) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 0);
        server.createContext("/", HBaseNode::handle);
        server.start();
        HMaster.main(new String[] {"start"});
    }

    private static void handle(HttpExchange exchange) {
        String answer;
        int status = 200;
        try (Connection connection = ConnectionFactory.createConnection(HBaseConfiguration.create())) {
            String query = exchange.getRequestURI().getRawQuery();
            String[] given = query == null ? new String[0] : query.split(",", -1);
            for (int each = 0; each < given.length; each++) {
                given[each] = URLDecoder.decode(given[each], StandardCharsets.UTF_8);
            }
            answer = run(connection.getAdmin(), exchange.getRequestURI().getPath().substring(1), given);
        } catch (Throwable error) {
            StringWriter text = new StringWriter();
            error.printStackTrace(new PrintWriter(text));
            answer = text.toString();
            status = 500;
        }
        try (exchange) {
            byte[] body = answer.getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
            exchange.getResponseBody().write(body);
        } catch (Exception error) {
            error.printStackTrace();
        }
    }

    private static String run(Admin admin, String command, String[] given) throws Exception {
        if (command.equals("ready")) {
            return admin.getClusterMetrics().getLiveServerMetrics().isEmpty() ? "" : "yes";
        }
        TableName table = TableName.valueOf(given[0]);
        switch (command) {
            case "split":
                List<RegionInfo> before = admin.getRegions(table);
                for (RegionInfo region : before) {
                    if (region.containsRow(Bytes.toBytesBinary(given[1]))) {
                        admin.splitRegionAsync(region.getRegionName(), Bytes.toBytesBinary(given[1])).get(60, TimeUnit.SECONDS);
                    }
                }
                break;
            case "merge": // the regions that meet at a key
                List<byte[]> names = new ArrayList<>();
                for (RegionInfo region : admin.getRegions(table)) {
                    byte[] key = Bytes.toBytesBinary(given[1]);
                    if (Bytes.equals(region.getStartKey(), key) || Bytes.equals(region.getEndKey(), key)) {
                        names.add(region.getEncodedNameAsBytes());
                    }
                }
                admin.mergeRegionsAsync(names.toArray(new byte[0][]), true).get(60, TimeUnit.SECONDS);
                break;
            case "move": // each region is closed and opened; there is one server
                for (RegionInfo region : admin.getRegions(table)) {
                    admin.unassign(region.getRegionName(), true);
                    admin.assign(region.getRegionName());
                }
                break;
            case "flush":
                admin.flush(table);
                break;
            case "drop":
                admin.disableTable(table);
                admin.deleteTable(table);
                break;
            case "disable":
                admin.disableTable(table);
                break;
            case "enable":
                admin.enableTable(table);
                break;
            default:
                throw new IllegalArgumentException("unknown command: " + command);
        }
        return "done";
    }
}
