// Kafka's rules for names. usage: Names FILE, lines of tab-separated commands, a line for each:
//   ssl RULES NAME             SslPrincipalMapper
//   kerberos RULES REALM NAME  KerberosShortNamer; RULES separated by `;;`
// `!` stands for a refusal.

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

public class Names {
    public static void main(String[] arguments) throws Exception {
        StringBuilder out = new StringBuilder();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] words = line.split("\t", -1);
            try {
                out.append(words[0].equals("ssl")
                    ? SslPrincipalMapper.fromRules(words[1]).getName(words[2])
                    : KerberosShortNamer.fromUnparsedRules(words[2], List.of(words[1].split(";;")))
                        .shortName(KerberosName.parse(words[3])));
            } catch (Exception refused) {
                out.append('!');
            }
            out.append('\n');
        }
        System.out.print(out);
    }
}
