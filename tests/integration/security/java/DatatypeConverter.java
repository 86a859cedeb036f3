// What Kafka's clients before 1.0 take from Java for SCRAM, and Java has no more since release 11.

package javax.xml.bind;

import java.util.Base64;

public class DatatypeConverter {
    public static byte[] parseBase64Binary(String text) {
        return Base64.getDecoder().decode(text);
    }

    public static String printBase64Binary(byte[] data) {
        return Base64.getEncoder().encodeToString(data);
    }
}
