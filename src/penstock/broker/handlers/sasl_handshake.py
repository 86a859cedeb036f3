"""SaslHandshake where nobody has to prove anything, or has done so: it comes at the wrong time.

Listeners with SASL take it before any handler does (broker/security/sasl_gate.py).
"""

from penstock.broker.context import RequestContext
from penstock.errors import ErrorCode
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
