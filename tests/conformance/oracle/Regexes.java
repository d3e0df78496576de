import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.nio.charset.StandardCharsets;

/** Answers, for each line of a pattern, a text and a replacement in hex, what java.util.regex makes of them, in hex. */
public final class Regexes {
    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split(",", -1);
            System.out.println(hex(answer(text(parts[0]), text(parts[1]), text(parts[2]))));
        }
    }

    private static String answer(String pattern, String text, String replacement) {
        try {
            Matcher matcher = Pattern.compile(pattern).matcher(text);
            return matcher.matches() + " " + matcher.reset().replaceFirst(replacement);
        } catch (IllegalArgumentException | IndexOutOfBoundsException | StackOverflowError error) {
            return "error " + error.getMessage();
        }
    }

    private static String text(String hex) {
        return new String(HexFormat.of().parseHex(hex), StandardCharsets.UTF_8);
    }

    private static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }
}
