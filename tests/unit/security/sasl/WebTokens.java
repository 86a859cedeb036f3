// Tokens signed by jose4j, which Kafka uses: `algorithm<TAB>key set<TAB>token` for each argument.

import java.util.List;
import org.jose4j.jwk.EcJwkGenerator;
import org.jose4j.jwk.JsonWebKey;
import org.jose4j.jwk.JsonWebKeySet;
import org.jose4j.jwk.PublicJsonWebKey;
import org.jose4j.jwk.RsaJwkGenerator;
import org.jose4j.jws.JsonWebSignature;
import org.jose4j.keys.EllipticCurves;

public class WebTokens {
    public static void main(String[] arguments) throws Exception {
        for (String algorithm : arguments) {
            PublicJsonWebKey key = switch (algorithm) {
                case "ES256" -> EcJwkGenerator.generateJwk(EllipticCurves.P256);
                case "ES384" -> EcJwkGenerator.generateJwk(EllipticCurves.P384);
                case "ES512" -> EcJwkGenerator.generateJwk(EllipticCurves.P521);
                default -> RsaJwkGenerator.generateJwk(2048);
            };
            key.setKeyId("k1");
            JsonWebSignature signature = new JsonWebSignature();
            signature.setPayload("{\"sub\":\"alice\",\"iat\":1000,\"exp\":2000,\"aud\":[\"kafka\"]}");
            signature.setKey(key.getPrivateKey());
            signature.setKeyIdHeaderValue("k1");
            signature.setAlgorithmHeaderValue(algorithm);
            String keys = new JsonWebKeySet(List.of(key))
                .toJson(JsonWebKey.OutputControlLevel.PUBLIC_ONLY);
            System.out.println(algorithm + "\t" + keys + "\t" + signature.getCompactSerialization());
        }
    }
}
