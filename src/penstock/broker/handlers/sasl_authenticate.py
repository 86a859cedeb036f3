"""SaslAuthenticate where nobody has to prove anything, or has done so: it comes at the wrong time.

Listeners with SASL take it before any handler does (broker/security/sasl_gate.py).
"""

from penstock.broker.context import RequestContext
from penstock.errors import ErrorCode
from penstock.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)


def handle(request: SaslAuthenticateRequest, context: RequestContext) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
