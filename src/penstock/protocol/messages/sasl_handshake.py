"""SaslHandshake: which SASL mechanism an authentication will use."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import array, int16, string


class SaslHandshakeRequest(Request, api=ApiKey.SASL_HANDSHAKE):
    """The mechanism the client wants."""

    mechanism: str = string("0+")


class SaslHandshakeResponse(Response, api=ApiKey.SASL_HANDSHAKE):
    """Whether it may, and which mechanisms the listener has."""

    error_code: int = int16("0+")
    mechanisms: list[str] = array(string, "0+")
