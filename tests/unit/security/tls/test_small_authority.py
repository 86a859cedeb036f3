"""The authority of a developer's cluster: what it signs is believed, by name and by time."""

import datetime
import socket
import ssl
import threading
from pathlib import Path

import pytest

from penstock.security.tls.small_authority import SmallAuthority

NOW = datetime.datetime.now(datetime.UTC)


def shake(server_pem: Path, ca: Path, host: str) -> None:
    """A handshake between the two; raises what the client makes of the server."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(server_pem)
    serving.load_verify_locations(ca)
    serving.verify_mode = ssl.CERT_REQUIRED
    near, far = socket.socketpair()

    def serve() -> None:
        try:
            serving.wrap_socket(far, server_side=True).close()
        except OSError:
            far.close()

    thread = threading.Thread(target=serve)
    thread.start()
    context = ssl.create_default_context(cafile=str(ca))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.load_cert_chain(server_pem)
    try:
        with context.wrap_socket(near, server_hostname=host) as client:
            client.recv(1)  # With TLS 1.3 the server's word on our certificate comes here.
    finally:
        near.close()
        thread.join()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    authority = SmallAuthority.create("a", now=NOW, days=2)
    ca, server = tmp_path / "ca.pem", tmp_path / "server.pem"
    ca.write_bytes(authority.certificate_pem)
    hosts = ["localhost", "127.0.0.1", "::1", "broker1.example.org"]
    server.write_bytes(authority.sign("server", hosts=hosts, now=NOW).pem)
    return server, ca


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "broker1.example.org"])
def test_both_sides_believe_a_signed_key_under_each_of_its_hosts(
    files: tuple[Path, Path], host: str
) -> None:
    shake(*files, host)


def test_another_host_is_not_believed(files: tuple[Path, Path]) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake(*files, "broker2.example.org")


def test_an_authority_that_is_over_is_not_believed(tmp_path: Path) -> None:
    then = NOW - datetime.timedelta(days=10)
    authority = SmallAuthority.create("a", now=then, days=2)
    ca, server = tmp_path / "ca.pem", tmp_path / "server.pem"
    ca.write_bytes(authority.certificate_pem)
    server.write_bytes(authority.sign("s", hosts=["localhost"], now=then).pem)
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        shake(server, ca, "localhost")


def test_keys_are_not_shown() -> None:
    authority = SmallAuthority.create("a", now=NOW, days=2)
    signed = authority.sign("s", hosts=["localhost"], now=NOW)
    assert "PRIVATE" not in repr(authority) + repr(signed)
