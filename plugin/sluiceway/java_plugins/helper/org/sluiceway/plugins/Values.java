package org.sluiceway.plugins;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.data.Date;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.header.Headers;

/**
 * Reads and writes Connect's values in the format of Python's marshal module, version 2. values.py is the other side.
 *
 * <p>A value with a schema crosses as its schema's number and a plain value: a Struct as the list of its fields, a Decimal as text,
 * dates and times as milliseconds. A value without a schema keeps its Java type by a tag, a tuple such as ("i", 5) for an Integer.
 * A schema's definition crosses once; Python numbers its schemas with even numbers, Java with odd ones. Not thread-safe.
 */
final class Values {
    private final Map<Schema, Integer> equal = new HashMap<>();
    private final IdentityHashMap<Schema, Integer> known = new IdentityHashMap<>();
    private final Map<Integer, Schema> numbered = new HashMap<>();
    private final List<Schema> announced = new ArrayList<>();
    private int next = 1;
    private ByteBuffer in = ByteBuffer.allocate(0);
    private byte[] out = new byte[1 << 16];
    private int at;

    /** Starts to read a tuple (reset, schema definitions, rows), up to the rows. */
    void open(ByteBuffer data) {
        in = data.order(ByteOrder.LITTLE_ENDIAN);
        in.get();
        in.getInt();
        if ((Boolean) read(null)) {
            equal.clear();
            known.clear();
            numbered.clear();
        }
        for (int count = count(); count > 0; count--) {
            count();
            int number = integer();
            Schema schema = definition();
            numbered.put(number, schema);
            equal.put(schema, number);
        }
    }

    /** Returns the length of the list or tuple that comes next. */
    int count() {
        in.get();
        return in.getInt();
    }

    int integer() {
        return ((Long) read(null)).intValue();
    }

    Integer optionalInteger() {
        Long value = (Long) read(null);
        return value == null ? null : (Integer) value.intValue();
    }

    String text() {
        return (String) read(null);
    }

    /** Returns whether a None comes next, and skips it. */
    boolean skipNull() {
        if (in.get(in.position()) != 'N') return false;
        in.get();
        return true;
    }

    Schema schema() {
        int number = integer();
        Schema schema = numbered.get(number);
        if (schema == null && number >= 0) throw new IllegalStateException("Unknown schema number " + number);
        return schema;
    }

    @SuppressWarnings("unchecked")
    Map<String, Object> map() {
        return (Map<String, Object>) read(null);
    }

    Headers headers() {
        ConnectHeaders headers = new ConnectHeaders();
        for (int count = count(); count > 0; count--) {
            count();
            String key = text();
            Schema schema = schema();
            headers.add(key, read(schema), schema);
        }
        return headers;
    }

    Object read(Schema schema) {
        byte code = in.get();
        switch (code) {
            case 'N': return null;
            case 'T': return true;
            case 'F': return false;
            case 'i': return number(schema, in.getInt());
            case 'l': return longNumber(schema);
            case 'g': {
                double value = in.getDouble();
                if (schema != null && schema.type() == Schema.Type.FLOAT32) return (float) value;
                return value;
            }
            case 'u': {
                String text = new String(bytes(), StandardCharsets.UTF_8);
                return schema != null && Decimal.LOGICAL_NAME.equals(schema.name()) ? new BigDecimal(text) : text;
            }
            case 's': return bytes();
            case '[': return schema != null && schema.type() == Schema.Type.STRUCT ? struct(schema) : list(schema);
            case '(': return schema == null ? tagged() : list(schema);
            case '{': {
                Map<Object, Object> map = new LinkedHashMap<>();
                while (in.get(in.position()) != '0') {
                    map.put(read(schema == null ? null : schema.keySchema()), read(schema == null ? null : schema.valueSchema()));
                }
                in.get();
                return map;
            }
            default: throw new IllegalStateException("Unknown type code " + (char) code);
        }
    }

    private static Object number(Schema schema, long value) {
        if (schema == null) return value;
        if (isDate(schema)) return new java.util.Date(value);
        switch (schema.type()) {
            case INT8: if (value == (byte) value) return (byte) value; break;
            case INT16: if (value == (short) value) return (short) value; break;
            case INT32: if (value == (int) value) return (int) value; break;
            case INT64: return value;
            default: break;
        }
        throw new DataException("Invalid value for schema type " + schema.type() + ": " + value);
    }

    private Object longNumber(Schema schema) {
        int count = in.getInt();
        BigInteger value = BigInteger.ZERO;
        long small = 0;
        for (int i = 0; i < Math.abs(count); i++) {
            long digit = in.getShort();
            if (i < 4) small |= digit << 15 * i;
            else value = value.or(BigInteger.valueOf(digit).shiftLeft(15 * i));
        }
        value = value.or(BigInteger.valueOf(small));
        value = count < 0 ? value.negate() : value;
        if (value.bitLength() > 63) throw new DataException("The number " + value + " does not fit into 64 bits");
        return number(schema, value.longValue());
    }

    private static boolean isDate(Schema schema) {
        String name = schema.name();
        return name != null && (name.equals(Timestamp.LOGICAL_NAME) || name.equals(Date.LOGICAL_NAME) || name.equals(Time.LOGICAL_NAME));
    }

    private byte[] bytes() {
        byte[] bytes = new byte[in.getInt()];
        in.get(bytes);
        return bytes;
    }

    private Struct struct(Schema schema) {
        in.getInt();
        Struct struct = new Struct(schema);
        for (Field field : schema.fields()) {
            Object value = read(field.schema());
            if (value != null) struct.put(field, value);
        }
        return struct;
    }

    private List<Object> list(Schema schema) {
        int count = in.getInt();
        List<Object> list = new ArrayList<>(count);
        for (int i = 0; i < count; i++) list.add(read(schema == null ? null : schema.valueSchema()));
        return list;
    }

    private Object tagged() {
        in.getInt();
        String tag = text();
        switch (tag) {
            case "i": return integer();
            case "s": return (short) integer();
            case "b": return (byte) integer();
            case "f": return ((Double) read(null)).floatValue();
            case "d": return new BigDecimal(text());
            case "n": return new BigInteger(text());
            case "t": return new java.util.Date((Long) read(null));
            case "S": return read(schema());
            default: throw new IllegalStateException("Unknown tag " + tag);
        }
    }

    @SuppressWarnings("unchecked")
    private Schema definition() {
        count();
        Schema.Type type = Schema.Type.valueOf(text());
        boolean optional = (Boolean) read(null);
        String name = text();
        Long version = (Long) read(null);
        String doc = text();
        Map<String, String> parameters = (Map<String, String>) read(null);
        Schema key = nested(), value = nested();
        SchemaBuilder builder = type == Schema.Type.MAP ? SchemaBuilder.map(key, value)
            : type == Schema.Type.ARRAY ? SchemaBuilder.array(value) : new SchemaBuilder(type);
        for (int fields = count(); fields > 0; fields--) {
            count();
            builder.field(text(), definition());
        }
        if (name != null) builder.name(name);
        if (version != null) builder.version(version.intValue());
        if (doc != null) builder.doc(doc);
        if (!parameters.isEmpty()) builder.parameters(parameters);
        Object standard = read(builder);
        if (standard != null) builder.defaultValue(standard);
        return (optional ? builder.optional() : builder.required()).build();
    }

    private Schema nested() {
        return skipNull() ? null : definition();
    }

    /** Starts to write. The bytes become a list of the rows that follow and the definitions of new schemas. */
    Values begin() {
        at = 0;
        return list(2);
    }

    /** Returns what was written since begin(), with the schemas that Python does not know. */
    ByteBuffer end() {
        list(announced.size());
        for (Schema schema : announced) {
            list(2);
            write(equal.get(schema), false);
            define(schema);
        }
        announced.clear();
        return ByteBuffer.wrap(out, 0, at);
    }

    /** Returns where the next value is written, for rewind(). */
    int position() {
        return at;
    }

    /** Drops what was written from a position on: a value that turned out to be invalid. */
    Values rewind(int position) {
        at = position;
        return this;
    }

    Values list(int count) {
        return one('[').little(count);
    }

    Values tuple(int count) {
        return one('(').little(count);
    }

    Values write(Object value) {
        return write(value, false);
    }

    Values write(Schema schema, Object value) {
        write(number(schema), false);
        return write(value, schema == null);
    }

    Values writeHeaders(Headers headers) {
        list(headers.size());
        for (Header header : headers) list(3).write(header.key(), false).write(header.schema(), header.value());
        return this;
    }

    private int number(Schema schema) {
        if (schema == null) return -1;
        Integer number = known.get(schema);
        if (number == null) {
            Schema built = schema.schema();
            number = equal.get(built);
            if (number == null) {
                number = next;
                next += 2;
                equal.put(built, number);
                numbered.put(number, built);
                announced.add(built);
            }
            if (known.size() > 10_000) known.clear();  // of a connector that makes a schema for each record
            known.put(schema, number);
        }
        return number;
    }

    /** Writes a value; tagged keeps the type of values without a schema. */
    Values write(Object value, boolean tagged) {
        if (value == null) return one('N');
        if (value instanceof String s) return text('u', s);
        if (value instanceof Long l) return whole(l);
        if (value instanceof Boolean b) return one(b ? 'T' : 'F');
        if (value instanceof Double d) return real(d);
        if (value instanceof Struct s) return tagged ? tag("S", 3).write(s.schema(), s) : struct(s);
        if (value instanceof byte[] b) return all('s', b, b.length);
        if (value instanceof ByteBuffer b) {
            byte[] copy = new byte[b.remaining()];
            b.duplicate().get(copy);
            return write(copy, tagged);
        }
        if (value instanceof List<?> l) {
            list(l.size());
            for (Object item : l) write(item, tagged);
            return this;
        }
        if (value instanceof Map<?, ?> m) {
            one('{');
            m.forEach((key, item) -> write(key, tagged).write(item, tagged));
            return one('0');
        }
        return tagged ? special(value) : untagged(value);
    }

    private Values untagged(Object value) {
        if (value instanceof Integer || value instanceof Short || value instanceof Byte) return whole(((Number) value).longValue());
        if (value instanceof Float f) return real(f.doubleValue());
        if (value instanceof java.util.Date d) return whole(d.getTime());
        if (value instanceof BigDecimal || value instanceof BigInteger) return text('u', value.toString());
        throw new DataException("Values of " + value.getClass() + " are not of Connect's types");
    }

    private Values special(Object value) {
        String tag = value instanceof Integer ? "i" : value instanceof Short ? "s" : value instanceof Byte ? "b" : value instanceof Float ? "f"
            : value instanceof BigDecimal ? "d" : value instanceof BigInteger ? "n" : "t";
        return tag(tag, 2).untagged(value);
    }

    private Values tag(String tag, int count) {
        return tuple(count).text('u', tag);
    }

    private Values struct(Struct struct) {
        List<Field> fields = struct.schema().fields();
        list(fields.size());
        for (Field field : fields) write(struct.getWithoutDefault(field.name()), false);
        return this;
    }

    private void define(Schema schema) {
        Schema.Type type = schema.type();
        list(10).write(type.name(), false).write(schema.isOptional(), false).write(schema.name(), false).write(schema.version(), false);
        write(schema.doc(), false).write(schema.parameters() == null ? Map.of() : schema.parameters(), false);
        optional(type == Schema.Type.MAP ? schema.keySchema() : null);
        optional(type == Schema.Type.MAP || type == Schema.Type.ARRAY ? schema.valueSchema() : null);
        List<Field> fields = type == Schema.Type.STRUCT ? schema.fields() : List.of();
        list(fields.size());
        for (Field field : fields) {
            list(2).write(field.name(), false);
            define(field.schema());
        }
        write(schema.defaultValue(), false);
    }

    private void optional(Schema schema) {
        if (schema == null) one('N');
        else define(schema);
    }

    private Values whole(long value) {
        if (value == (int) value) return one('i').little((int) value);
        int digits = 0;
        for (long rest = Math.abs(value); rest != 0; rest >>>= 15) digits++;
        one('l').little(value < 0 ? -digits : digits);
        for (long rest = Math.abs(value); rest != 0; rest >>>= 15) one((int) (rest & 0xff)).one((int) (rest >> 8 & 0x7f));
        return this;
    }

    private Values real(double value) {
        long bits = Double.doubleToRawLongBits(value);
        return one('g').little((int) bits).little((int) (bits >>> 32));
    }

    private Values text(char code, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return all(code, bytes, bytes.length);
    }

    private Values all(char code, byte[] bytes, int count) {
        one(code).little(count).room(count);
        System.arraycopy(bytes, 0, out, at, count);
        at += count;
        return this;
    }

    private Values little(int value) {
        room(4);
        out[at++] = (byte) value;
        out[at++] = (byte) (value >> 8);
        out[at++] = (byte) (value >> 16);
        out[at++] = (byte) (value >> 24);
        return this;
    }

    private Values one(int value) {
        room(1);
        out[at++] = (byte) value;
        return this;
    }

    private void room(int count) {
        if (out.length - at < count) out = Arrays.copyOf(out, Math.max(out.length * 2, at + count));
    }
}
