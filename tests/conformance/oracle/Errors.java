import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.regex.Pattern;

/** Describes exceptions as the vectors do. */
final class Errors {
    private static final Pattern IDENTITY = Pattern.compile("@[0-9a-f]{3,8}\\b");
    /** Java class names and the like, as they stand within Kafka's own texts. */
    private static final Pattern OF_THE_JDK = Pattern.compile("\\bjava\\.|class \\[|@<hash>");

    private Errors() {
    }

    static ObjectNode at(String stage, Exception error) {
        ObjectNode answer = Oracle.JSON.createObjectNode();
        answer.set("error", describe(error).put("stage", stage));
        return answer;
    }

    static ObjectNode at(String stage, Exception error, int index) {
        ObjectNode answer = at(stage, error);
        ((ObjectNode) answer.get("error")).put("index", index);
        return answer;
    }

    static ObjectNode describe(Throwable error) {
        String message = error.getMessage() == null ? null : IDENTITY.matcher(error.getMessage()).replaceAll("@<hash>");
        String name = error.getClass().getName();
        ObjectNode node = Oracle.JSON.createObjectNode().put("class", name).put("message", message);
        boolean kafkas = name.startsWith("org.apache.kafka.");
        boolean mixed = message != null && OF_THE_JDK.matcher(message).find();
        node.put("message_kind", !kafkas ? "jdk" : mixed ? "kafka+jdk" : "kafka");
        if (error.getCause() != null) {
            node.set("cause", describe(error.getCause()));
        }
        return node;
    }
}
