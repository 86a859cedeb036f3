// Kafka's own SCRAM, both sides, over lines of standard input. Tokens are base64; `!` is a refusal.
//   client MECHANISM USER PASSWORD TOKENAUTH   a new client; prints its first message
//   server MECHANISM USER CREDENTIAL OWNER     a new server; OWNER `-`: USER is no token
//   c TOKEN | s TOKEN                          a step of the client or the server
//   who                                        the server's authorization id

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.PasswordCallback;
import javax.security.sasl.SaslClient;
import javax.security.sasl.SaslServer;
import org.apache.kafka.common.security.auth.SaslExtensions;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.scram.ScramCredentialCallback;
import org.apache.kafka.common.security.scram.ScramExtensionsCallback;
import org.apache.kafka.common.security.scram.internals.ScramCredentialUtils;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;
import org.apache.kafka.common.security.scram.internals.ScramSaslClient;
import org.apache.kafka.common.security.scram.internals.ScramSaslServer;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCredentialCallback;

public class Scram {
    static SaslClient client;
    static SaslServer server;

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = answer(line.split("\t", -1));
            } catch (javax.security.sasl.SaslException
                     | org.apache.kafka.common.KafkaException refused) {
                answer = "!" + refused.getMessage();
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "client":
                client = new ScramSaslClient(ScramMechanism.forMechanismName(words[1]),
                    callbacks -> {
                        for (Callback one : callbacks) {
                            if (one instanceof NameCallback name) name.setName(words[2]);
                            if (one instanceof PasswordCallback secret)
                                secret.setPassword(words[3].toCharArray());
                            if (one instanceof ScramExtensionsCallback more
                                && words[4].equals("true"))
                                more.extensions(Map.of("tokenauth", "true"));
                        }
                    });
                return text(client.evaluateChallenge(new byte[0]));
            case "server":
                server = new ScramSaslServer(
                    ScramMechanism.forMechanismName(words[1]), Map.of(), users(words));
                return "";
            case "c":
                byte[] next = client.evaluateChallenge(Base64.getDecoder().decode(words[1]));
                return client.isComplete() ? "complete" : text(next);
            case "s":
                return text(server.evaluateResponse(Base64.getDecoder().decode(words[1])));
            case "who":
                return server.getAuthorizationID();
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    static CallbackHandler users(String[] words) {
        return callbacks -> {
            String name = ((NameCallback) callbacks[0]).getDefaultName();
            ScramCredential credential =
                name.equals(words[2]) ? ScramCredentialUtils.credentialFromString(words[3]) : null;
            ((ScramCredentialCallback) callbacks[1]).scramCredential(credential);
            if (callbacks[1] instanceof DelegationTokenCredentialCallback token)
                token.tokenOwner(words[4]);
        };
    }

    static String text(byte[] token) {
        return Base64.getEncoder().encodeToString(token);
    }
}
