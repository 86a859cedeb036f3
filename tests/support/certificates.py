"""Certificates of a test's own: an authority, a server's and a client's, made with openssl."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """PEM files; a `both` holds the key and the certificate, as Java's PEM stores do."""

    ca: Path
    stranger_ca: Path  # An authority that signed nothing here.
    server: Path
    server_key: Path
    server_both: Path
    client: Path
    client_key: Path
    client_key_locked: Path  # The same key behind a password.
    client_both: Path


KEY_PASSWORD = "open sesame"


def make_certificates(directory: Path, *, host: str = "127.0.0.1") -> Certificates:
    """A small world of trust, valid for two days; the server's name is `host`."""
    directory.mkdir(parents=True, exist_ok=True)
    ca = _authority(directory, "ca")
    stranger = _authority(directory, "stranger")
    server, server_key = _signed(directory, "server", f"subjectAltName=IP:{host}")
    client, client_key = _signed(directory, "client", "subjectAltName=DNS:client")
    locked = directory / "client-locked.key"
    _openssl(
        "pkcs8", "-topk8", "-in", client_key, "-out", locked, "-passout", f"pass:{KEY_PASSWORD}"
    )
    return Certificates(
        ca=ca,
        stranger_ca=stranger,
        server=server,
        server_key=server_key,
        server_both=_joined(directory / "server-both.pem", server_key, server, ca),
        client=client,
        client_key=client_key,
        client_key_locked=locked,
        client_both=_joined(directory / "client-both.pem", client_key, client, ca),
    )


def _authority(directory: Path, name: str) -> Path:
    certificate, key = directory / f"{name}.pem", directory / f"{name}.key"
    _openssl(
        *["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"],
        *["-subj", f"/CN={name}", "-keyout", key, "-out", certificate],
    )
    return certificate


def _signed(directory: Path, name: str, extension: str) -> tuple[Path, Path]:
    key, request = directory / f"{name}.key", directory / f"{name}.csr"
    certificate, extensions = directory / f"{name}.pem", directory / f"{name}.ext"
    extensions.write_text(extension + "\n")
    _openssl(
        *["req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}"],
        *["-keyout", key, "-out", request],
    )
    _openssl(
        *["x509", "-req", "-in", request, "-days", "2", "-extfile", extensions],
        *["-CA", directory / "ca.pem", "-CAkey", directory / "ca.key", "-CAcreateserial"],
        *["-out", certificate],
    )
    return certificate, key


def _joined(target: Path, *parts: Path) -> Path:
    target.write_text("".join(part.read_text() for part in parts))
    return target


def _openssl(*words: object) -> None:
    command = ["openssl", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
