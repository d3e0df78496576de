import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.data.ConnectSchema;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.errors.DataException;

/** The vectors' form of data (schema JSON, payloads, typed nodes) to and from Connect's schemas and values. */
final class VectorData {
    private static final JsonNodeFactory NODES = JsonNodeFactory.withExactBigDecimals(true);
    private static final long DAY = 86_400_000L;
    private static final Map<String, Schema.Type> TYPES = new HashMap<>();

    static {
        for (Schema.Type type : Schema.Type.values()) {
            TYPES.put(typeName(type), type);
        }
    }

    private VectorData() {
    }

    // --- reading ---

    static SchemaAndValue read(JsonNode node, String name) {
        Schema schema = schema(node.get("schema"));
        if (node.has("typed")) {
            return new SchemaAndValue(schema, typed(node.get("typed")));
        }
        Schema own = node.has("struct_schema") ? schema(node.get("struct_schema")) : schema;
        return new SchemaAndValue(schema, payload(own, node.get(name)));
    }

    private static Schema schema(JsonNode node) {
        if (node == null || node.isNull()) {
            return null;
        }
        Schema.Type type = TYPES.get(node.get("type").asText());
        List<Field> fields = null;
        if (type == Schema.Type.STRUCT) {
            fields = new ArrayList<>();
            for (JsonNode field : node.get("fields")) {
                fields.add(new Field(field.get("field").asText(), fields.size(), schema(field)));
            }
        }
        Map<String, String> parameters = node.has("parameters") ? Oracle.properties(node.get("parameters")) : null;
        Schema keys = schema(node.get("keys"));
        Schema values = schema(type == Schema.Type.ARRAY ? node.get("items") : node.get("values"));
        Schema plain = build(type, node, null, parameters, fields, keys, values);
        Object standard = payload(plain, node.get("default"));
        return standard == null ? plain : build(type, node, standard, parameters, fields, keys, values);
    }

    private static Schema build(Schema.Type type, JsonNode node, Object standard, Map<String, String> parameters,
                                List<Field> fields, Schema keys, Schema values) {
        Integer version = node.hasNonNull("version") ? node.get("version").asInt() : null;
        return new ConnectSchema(type, node.path("optional").asBoolean(), standard, text(node, "name"), version,
                text(node, "doc"), parameters, fields, keys, values);
    }

    private static String text(JsonNode node, String name) {
        return node.hasNonNull(name) ? node.get(name).asText() : null;
    }

    private static Object payload(Schema schema, JsonNode node) {
        if (node == null || node.isNull()) {
            return null;
        }
        if (schema == null) {
            return schemaless(node);
        }
        if (schema.name() != null && (node.isIntegralNumber() || node.isTextual())) {
            switch (schema.name()) {
                case Decimal.LOGICAL_NAME:
                    return Decimal.toLogical(schema, base64(node));
                case org.apache.kafka.connect.data.Date.LOGICAL_NAME:
                    return new Date(node.asLong() * DAY);
                case Time.LOGICAL_NAME:
                case Timestamp.LOGICAL_NAME:
                    return new Date(node.asLong());
                default:
            }
        }
        switch (schema.type()) {
            case INT8: return (byte) node.asInt();
            case INT16: return (short) node.asInt();
            case INT32: return node.asInt();
            case INT64: return node.asLong();
            case FLOAT32: return (float) floating(node);
            case FLOAT64: return floating(node);
            case BOOLEAN: return node.asBoolean();
            case STRING: return node.asText();
            case BYTES: return base64(node);
            case ARRAY: {
                List<Object> items = new ArrayList<>();
                node.forEach(item -> items.add(payload(schema.valueSchema(), item)));
                return items;
            }
            case MAP: return map(schema, node);
            default: {
                Struct struct = new Struct(schema);
                for (Field field : schema.fields()) {
                    Object value = payload(field.schema(), node.get(field.name()));
                    if (value != null) {
                        struct.put(field, value);
                    }
                }
                return struct;
            }
        }
    }

    private static Map<Object, Object> map(Schema schema, JsonNode node) {
        Map<Object, Object> entries = new HashMap<>();
        if (node.isObject()) {
            node.properties().forEach(entry ->
                    entries.put(entry.getKey(), payload(schema.valueSchema(), entry.getValue())));
        } else {
            node.forEach(pair ->
                    entries.put(payload(schema.keySchema(), pair.get(0)), payload(schema.valueSchema(), pair.get(1))));
        }
        return entries;
    }

    private static Object schemaless(JsonNode node) {
        if (node.isObject()) {
            Map<Object, Object> entries = new HashMap<>();
            node.properties().forEach(entry -> entries.put(entry.getKey(), schemaless(entry.getValue())));
            return entries;
        }
        if (node.isArray()) {
            List<Object> items = new ArrayList<>();
            node.forEach(item -> items.add(schemaless(item)));
            return items;
        }
        return node.isNull() ? null : node.isBoolean() ? (Object) node.asBoolean() : node.isTextual() ? node.asText()
                : node.isIntegralNumber() ? (Object) node.asLong() : (Object) node.asDouble();
    }

    private static double floating(JsonNode node) {
        return node.isTextual() ? Double.parseDouble(node.asText()) : node.doubleValue();
    }

    private static byte[] base64(JsonNode node) {
        return Base64.getDecoder().decode(node.asText());
    }

    private static Object typed(JsonNode node) {
        if (node == null || node.isNull()) {
            return null;
        }
        JsonNode value = node.get("v");
        switch (node.get("t").asText()) {
            case "int8": return (byte) value.asInt();
            case "int16": return (short) value.asInt();
            case "int32": return value.asInt();
            case "int64": return value.asLong();
            case "float32": return (float) floating(value);
            case "float64": return floating(value);
            case "boolean": return value.asBoolean();
            case "string": return value.asText();
            case "bytes": return base64(value);
            case "decimal": return new BigDecimal(value.asText());
            case "biginteger": return new BigInteger(value.asText());
            case "date": return new Date(value.asLong());
            case "array": {
                List<Object> items = new ArrayList<>();
                value.forEach(item -> items.add(typed(item)));
                return items;
            }
            case "map": {
                Map<Object, Object> entries = new HashMap<>();
                value.forEach(pair -> entries.put(typed(pair.get(0)), typed(pair.get(1))));
                return entries;
            }
            case "struct": return payload(schema(node.get("schema")), value);
            default: throw new IllegalArgumentException("no such type: " + node);
        }
    }

    // --- writing ---

    static ObjectNode write(SchemaAndValue data, String name) {
        ObjectNode node = NODES.objectNode();
        node.set("schema", write(data.schema()));
        node.set(name, write(data.schema(), data.value()));
        if (!fits(data.schema(), data.value())) {
            node.set("typed", typed(data.value()));
        }
        return node;
    }

    private static String typeName(Schema.Type type) {
        return type == Schema.Type.FLOAT32 ? "float" : type == Schema.Type.FLOAT64 ? "double" : type.getName();
    }

    private static JsonNode write(Schema schema) {
        if (schema == null) {
            return NODES.nullNode();
        }
        ObjectNode node = NODES.objectNode().put("type", typeName(schema.type())).put("optional", schema.isOptional());
        if (schema.name() != null) {
            node.put("name", schema.name());
        }
        if (schema.version() != null) {
            node.put("version", schema.version());
        }
        if (schema.doc() != null) {
            node.put("doc", schema.doc());
        }
        if (schema.parameters() != null && !schema.parameters().isEmpty()) {
            ObjectNode parameters = node.putObject("parameters");
            schema.parameters().forEach(parameters::put);
        }
        if (schema.defaultValue() != null) {
            node.set("default", write(schema, schema.defaultValue()));
        }
        if (schema.type() == Schema.Type.ARRAY) {
            node.set("items", write(schema.valueSchema()));
        } else if (schema.type() == Schema.Type.MAP) {
            node.set("keys", write(schema.keySchema()));
            node.set("values", write(schema.valueSchema()));
        } else if (schema.type() == Schema.Type.STRUCT) {
            ArrayNode fields = node.putArray("fields");
            schema.fields().forEach(field -> fields.add(((ObjectNode) write(field.schema())).put("field", field.name())));
        }
        return node;
    }

    /** Says whether a payload alone shows what the value is. */
    private static boolean fits(Schema schema, Object value) {
        if (value == null) {
            return true;
        }
        if (schema == null) {
            if (value instanceof List) {
                return ((List<?>) value).stream().allMatch(item -> fits(null, item));
            }
            if (value instanceof Map) {
                return ((Map<?, ?>) value).entrySet().stream()
                        .allMatch(entry -> entry.getKey() instanceof String && fits(null, entry.getValue()));
            }
            return value instanceof Long || value instanceof Double || value instanceof Boolean || value instanceof String;
        }
        boolean array = schema.type() == Schema.Type.ARRAY;
        if ((array || schema.type() == Schema.Type.MAP) && schema.valueSchema() == null) {
            return false;
        }
        try {
            ConnectSchema.validateValue(schema, value);
            write(schema, value);
        } catch (DataException error) {
            return false;
        }
        if (value instanceof BigDecimal) {
            return String.valueOf(((BigDecimal) value).scale()).equals(parameter(schema, "scale"));
        }
        return !(value instanceof Struct) || schema.fields().stream()
                .allMatch(field -> fits(field.schema(), ((Struct) value).getWithoutDefault(field.name())));
    }

    private static String parameter(Schema schema, String name) {
        return schema.parameters() == null ? null : schema.parameters().get(name);
    }

    private static JsonNode write(Schema schema, Object value) {
        if (value instanceof Struct) {
            ObjectNode node = NODES.objectNode();
            for (Field field : ((Struct) value).schema().fields()) {
                node.set(field.name(), write(field.schema(), ((Struct) value).getWithoutDefault(field.name())));
            }
            return node;
        }
        if (value instanceof List) {
            ArrayNode node = NODES.arrayNode();
            Schema items = schema != null && schema.type() == Schema.Type.ARRAY ? schema.valueSchema() : null;
            ((List<?>) value).forEach(item -> node.add(write(items, item)));
            return node;
        }
        if (value instanceof Map) {
            return writeMap(schema != null && schema.type() == Schema.Type.MAP ? schema : null, (Map<?, ?>) value);
        }
        if (value instanceof BigDecimal && schema != null
                && String.valueOf(((BigDecimal) value).scale()).equals(parameter(schema, "scale"))) {
            return NODES.textNode(Base64.getEncoder().encodeToString(((BigDecimal) value).unscaledValue().toByteArray()));
        }
        if (value instanceof Date && schema != null && org.apache.kafka.connect.data.Date.LOGICAL_NAME.equals(schema.name())) {
            return NODES.numberNode((int) Math.floorDiv(((Date) value).getTime(), DAY));
        }
        return scalar(value);
    }

    private static JsonNode writeMap(Schema schema, Map<?, ?> map) {
        Schema keys = schema == null ? null : schema.keySchema();
        Schema values = schema == null ? null : schema.valueSchema();
        boolean texts = schema == null || keys != null && keys.type() == Schema.Type.STRING;
        if (texts && map.keySet().stream().allMatch(String.class::isInstance)) {
            ObjectNode node = NODES.objectNode();
            map.forEach((key, item) -> node.set((String) key, write(values, item)));
            return node;
        }
        ArrayNode node = NODES.arrayNode();
        map.forEach((key, item) -> node.addArray().add(write(keys, key)).add(write(values, item)));
        return node;
    }

    private static JsonNode scalar(Object value) {
        if (value == null) {
            return NODES.nullNode();
        }
        if (value instanceof Double || value instanceof Float) {
            double number = ((Number) value).doubleValue();
            boolean finite = !Double.isNaN(number) && !Double.isInfinite(number);
            return !finite ? NODES.textNode(value.toString())
                    : value instanceof Float ? NODES.numberNode((Float) value) : NODES.numberNode(number);
        }
        if (value instanceof Byte || value instanceof Short || value instanceof Integer || value instanceof Long) {
            return NODES.numberNode(((Number) value).longValue());
        }
        if (value instanceof byte[]) {
            return NODES.binaryNode((byte[]) value);
        }
        if (value instanceof ByteBuffer) {
            ByteBuffer buffer = ((ByteBuffer) value).duplicate();
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            return NODES.binaryNode(bytes);
        }
        return value instanceof Date ? NODES.numberNode(((Date) value).getTime())
                : value instanceof Boolean ? NODES.booleanNode((Boolean) value) : NODES.textNode(value.toString());
    }

    private static JsonNode typed(Object value) {
        if (value == null) {
            return NODES.nullNode();
        }
        ObjectNode node = NODES.objectNode().put("t", kind(value));
        if (value instanceof List) {
            ArrayNode items = node.putArray("v");
            ((List<?>) value).forEach(item -> items.add(typed(item)));
        } else if (value instanceof Map) {
            ArrayNode pairs = node.putArray("v");
            ((Map<?, ?>) value).forEach((key, item) -> pairs.addArray().add(typed(key)).add(typed(item)));
        } else if (value instanceof Struct) {
            ArrayNode pairs = node.putArray("v");
            for (Field field : ((Struct) value).schema().fields()) {
                pairs.addArray().add(field.name()).add(typed(((Struct) value).getWithoutDefault(field.name())));
            }
        } else {
            node.set("v", scalar(value));
        }
        return node;
    }

    private static String kind(Object value) {
        Schema.Type type = ConnectSchema.schemaType(value.getClass());
        if (type != null) {
            return type == Schema.Type.FLOAT32 ? "float32" : type == Schema.Type.FLOAT64 ? "float64" : type.getName();
        }
        return value instanceof BigDecimal ? "decimal" : value instanceof BigInteger ? "biginteger"
                : value instanceof Date ? "date" : "object";
    }
}
