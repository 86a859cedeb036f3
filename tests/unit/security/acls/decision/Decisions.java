// What Kafka's StandardAuthorizer decides. usage: Decisions FILE
// Each line of the file is a tab-separated command; each question is answered with a line.
//   world SUPER_USERS ALLOW_EVERYONE                            a new authorizer without rules
//   rule TYPE NAME PATTERN PRINCIPAL HOST OPERATION PERMISSION
//   ask PRINCIPAL HOST OPERATION TYPE NAME                      ALLOWED | DENIED
//   any PRINCIPAL HOST OPERATION TYPE                           authorizeByResourceType
//   find TYPE NAME PATTERN PRINCIPAL HOST OPERATION PERMISSION  the rules of a filter; `-` is null
//   print TYPE NAME PATTERN PRINCIPAL HOST OPERATION PERMISSION the rule as the audit log shows it

import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

public class Decisions {
    record Context(KafkaPrincipal principal, InetAddress clientAddress)
            implements AuthorizableRequestContext {
        public String listenerName() { return "L"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        public int requestType() { return 0; }
        public int requestVersion() { return 0; }
        public String clientId() { return "c"; }
        public int correlationId() { return 0; }
    }

    public static void main(String[] arguments) throws Exception {
        StandardAuthorizer authorizer = null;
        StringBuilder out = new StringBuilder();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "world" -> authorizer = world(words[1], words[2]);
                case "rule" -> authorizer.addAcl(Uuid.randomUuid(), rule(words));
                case "ask" -> out.append(ask(authorizer, words)).append('\n');
                case "any" -> out.append(authorizer.authorizeByResourceType(
                    context(words), AclOperation.valueOf(words[3]), ResourceType.valueOf(words[4])))
                    .append('\n');
                case "find" -> out.append(find(authorizer, words)).append('\n');
                case "print" -> out.append(rule(words)).append('\n');
                default -> throw new IllegalArgumentException(line);
            }
        }
        System.out.print(out);
    }

    static StandardAuthorizer world(String superUsers, String allowEveryone) {
        Map<String, String> settings = new HashMap<>();
        settings.put("super.users", superUsers);
        settings.put("allow.everyone.if.no.acl.found", allowEveryone);
        settings.put("node.id", "0");
        StandardAuthorizer authorizer = new StandardAuthorizer();
        authorizer.configure(settings);
        authorizer.withPluginMetrics(new org.apache.kafka.common.metrics.internals.PluginMetricsImpl(
            new org.apache.kafka.common.metrics.Metrics(), Map.of()));
        authorizer.completeInitialLoad();
        return authorizer;
    }

    static StandardAcl rule(String[] words) {
        return new StandardAcl(ResourceType.valueOf(words[1]), words[2],
            PatternType.valueOf(words[3]), words[4], words[5], AclOperation.valueOf(words[6]),
            AclPermissionType.valueOf(words[7]));
    }

    static Context context(String[] words) throws Exception {
        return new Context(
            SecurityUtils.parseKafkaPrincipal(words[1]), InetAddress.getByName(words[2]));
    }

    static Object ask(StandardAuthorizer authorizer, String[] words) throws Exception {
        ResourcePattern resource =
            new ResourcePattern(ResourceType.valueOf(words[4]), words[5], PatternType.LITERAL);
        Action action = new Action(AclOperation.valueOf(words[3]), resource, 1, true, true);
        return authorizer.authorize(context(words), List.of(action)).get(0);
    }

    static String nullable(String word) {
        return word.equals("-") ? null : word;
    }

    static String find(StandardAuthorizer authorizer, String[] words) {
        AclBindingFilter filter = new AclBindingFilter(
            new ResourcePatternFilter(ResourceType.valueOf(words[1]), nullable(words[2]),
                PatternType.valueOf(words[3])),
            new AccessControlEntryFilter(nullable(words[4]), nullable(words[5]),
                AclOperation.valueOf(words[6]), AclPermissionType.valueOf(words[7])));
        List<String> found = new ArrayList<>();
        for (AclBinding binding : authorizer.acls(filter)) {
            found.add(String.join("|", binding.pattern().resourceType().name(),
                binding.pattern().name(), binding.pattern().patternType().name(),
                binding.entry().principal(), binding.entry().host(),
                binding.entry().operation().name(), binding.entry().permissionType().name()));
        }
        Collections.sort(found);
        return String.join(" ", found);
    }
}
