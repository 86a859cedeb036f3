"""A Kerberos of the tests' own: a key distribution centre on the loopback, its realm and keytabs.

MIT's programs run as this user, with all files in one directory; nothing of the machine's own
Kerberos is read or changed. Processes find it by the variables of `environment`.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.processes import HOST, PATIENCE_S, free_port
from tests.support.waiting import eventually

REALM = "PENSTOCK.TEST"
PROGRAMS = ("krb5kdc", "kadmin.local", "kdb5_util")
_PLACES = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])

# No name is looked up anywhere: `localhost` is the host, as both sides write it.
_CLIENTS = """\
[libdefaults]
    default_realm = {realm}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    dns_canonicalize_hostname = false
    rdns = false
    udp_preference_limit = 1
[realms]
    {realm} = {{
        kdc = {host}:{port}
    }}
[domain_realm]
    localhost = {realm}
"""
_CENTRE = """\
[kdcdefaults]
    kdc_listen = {host}:{port}
    kdc_tcp_listen = {host}:{port}
[realms]
    {realm} = {{
        database_name = {directory}/principal
        key_stash_file = {directory}/stash
        acl_file = {directory}/kadm5.acl
        max_life = 10h 0m 0s
        supported_enctypes = aes256-cts:normal aes128-cts:normal
    }}
[logging]
    kdc = FILE:{directory}/kdc.log
"""


def missing_programs() -> str:
    """Why there can be no centre here; empty when there can."""
    lacking = [name for name in PROGRAMS if shutil.which(name, path=_PLACES) is None]
    if not lacking:
        return ""
    return f"{', '.join(lacking)} not installed (Debian: krb5-kdc, krb5-admin-server)"


class KeyCentre:
    """One realm. `port` answers once `running_centre` gave it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        words = {"realm": REALM, "host": HOST, "port": self.port, "directory": directory}
        (directory / "krb5.conf").write_text(_CLIENTS.format(**words))
        (directory / "kdc.conf").write_text(_CENTRE.format(**words))

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to find the realm; it has no tickets and no keys by itself."""
        return {
            "KRB5_CONFIG": str(self.directory / "krb5.conf"),
            "KRB5CCNAME": f"FILE:{self.directory / 'no-tickets'}",
            "KRB5_KTNAME": f"FILE:{self.directory / 'no-keys'}",
            "KRB5RCACHENAME": f"file2:{self.directory / 'replays'}",
        }

    @property
    def java_options(self) -> list[str]:
        return [f"-Djava.security.krb5.conf={self.directory / 'krb5.conf'}"]

    def add(self, *principals: str) -> Path:
        """A keytab with the keys of these, made anew."""
        keytab = self.directory / f"{principals[0].replace('/', '-')}.keytab"
        for principal in principals:
            self._administer(f"addprinc -randkey {principal}")
        self._administer(f"ktadd -k {keytab} {' '.join(principals)}")
        return keytab

    def tickets(self, keytab: Path, principal: str) -> Path:
        """A file of tickets, as `kinit` leaves them."""
        cache = self.directory / f"{principal}.tickets"
        self.run(["kinit", "-k", "-t", str(keytab), "-c", f"FILE:{cache}", principal])
        return cache

    def make(self) -> None:
        self.run(["kdb5_util", "create", "-s", "-r", REALM, "-P", "of the tests"])

    def launch(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command(["krb5kdc", "-n", "-r", REALM]),
            env=self._variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def run(self, command: list[str]) -> None:
        done = subprocess.run(
            self._command(command),
            env=self._variables,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, f"{command[0]} failed: {done.stdout}{done.stderr}"

    def _administer(self, words: str) -> None:
        self.run(["kadmin.local", "-r", REALM, "-q", words])

    @property
    def _variables(self) -> dict[str, str]:
        profile = {"KRB5_KDC_PROFILE": str(self.directory / "kdc.conf")}
        return {**os.environ, **self.environment, **profile}

    def _command(self, command: list[str]) -> list[str]:
        return [str(shutil.which(command[0], path=_PLACES)), *command[1:]]


@contextmanager
def running_centre(directory: Path) -> Iterator[KeyCentre]:
    """A realm that gives out tickets; skips the test where its programs are missing."""
    if reason := missing_programs():
        pytest.skip(reason)
    centre = KeyCentre(directory)
    centre.make()
    first = centre.add("first")
    process = centre.launch()
    try:
        eventually(lambda: centre.tickets(first, "first"), timeout_s=PATIENCE_S, every_s=0.1)
        yield centre
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
