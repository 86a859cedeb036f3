"""The client of raw bytes behind TLS, with a password."""

import ssl
import struct

from tests.support.wire import HOST, RawConnection, WireError, string

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36


class SecureConnection(RawConnection):
    """One connection that has shown who it is."""

    def __init__(
        self,
        port: int,
        *,
        context: ssl.SSLContext,
        user: str,
        password: str,
        host: str = HOST,
        timeout_s: float = 60.0,
    ) -> None:
        super().__init__(port, host=host, timeout_s=timeout_s)
        try:
            self.socket = context.wrap_socket(self.socket, server_hostname=host)
            self._log_in(user, password)
        except BaseException:
            self.close()
            raise

    def _log_in(self, user: str, password: str) -> None:
        if self.ask(SASL_HANDSHAKE, 1, string("PLAIN")).number("h") != 0:
            raise WireError("PLAIN is not served")
        token = f"\0{user}\0{password}".encode()
        answer = self.ask(SASL_AUTHENTICATE, 0, struct.pack(">i", len(token)) + token)
        if answer.number("h") != 0:
            raise WireError(answer.text())
