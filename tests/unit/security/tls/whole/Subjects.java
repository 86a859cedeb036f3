// Subjects of certificates as Java prints them. usage: Subjects FILE, a line of hexadecimal each.

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import javax.security.auth.x500.X500Principal;

public class Subjects {
    public static void main(String[] arguments) throws Exception {
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            System.out.println(new X500Principal(HexFormat.of().parseHex(line)).getName());
        }
    }
}
