"""The TLS handshake of the wire client; what it believes and shows is said in `security`.

`ssl` is imported only by a client that uses it.
"""

import socket
from typing import TYPE_CHECKING

from penstock.client.errors import AuthenticationError, BrokerUnreachableError

if TYPE_CHECKING:
    from penstock.security.tls.client_contexts import ClientTls


def shake_hands(tls: "ClientTls", plain: socket.socket, host: str, address: str) -> socket.socket:
    """TLS over a connected socket; the plain one must not be used after."""
    import ssl

    context = tls.context()
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        plain.close()
        raise AuthenticationError(
            f"The certificate of {address} is not to be trusted: {error.verify_message}. "
            "ssl.ca.location says whom to trust."
        ) from error
    except ssl.SSLError as error:
        plain.close()
        reason = (error.reason or str(error)).lower().replace("_", " ")
        raise AuthenticationError(
            f"The TLS handshake with {address} failed: {reason}. "
            "Is it a listener with TLS, and does it ask for a certificate?"
        ) from error
    except OSError as error:  # Also where the other side hangs up or keeps silent.
        plain.close()
        raise BrokerUnreachableError(
            f"{address} did not complete the TLS handshake. Is it a listener with TLS?"
        ) from error
