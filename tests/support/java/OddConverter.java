package test;

import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.storage.StringConverter;

/** A StringConverter that refuses each tenth value. */
public class OddConverter extends StringConverter {
    @Override public byte[] fromConnectData(String topic, Schema schema, Object value) {
        if (value.toString().endsWith("5")) throw new DataException("not " + value);
        return super.fromConnectData(topic, schema, value);
    }
}
