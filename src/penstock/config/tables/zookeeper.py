"""The connection to ZooKeeper; unset, the metadata is in an embedded store."""

from typing import Final

from penstock.config.settings import (
    ACTS,
    BOOLEAN,
    HIGH,
    INERT,
    INT,
    LIST,
    LOW,
    MEDIUM,
    PASSWORD,
    READ_ONLY,
    STRING,
    Bounds,
    Setting,
)

# One setting, two lines: a table is read down its columns.
# fmt: off
SETTINGS: Final = (
    # Connection.
    Setting("zookeeper.connect", STRING, None, None, HIGH, READ_ONLY,
            ACTS, "The ensemble, as host:port,host:port/chroot; unset, the store is embedded."),
    Setting("penstock.shared.metadata", STRING, None, None, LOW, READ_ONLY, ACTS,
            "The file in which several broker processes of this machine keep their metadata;"
            " `penstock server --processes` sets it. Not beside zookeeper.connect."),
    Setting("broker.session.timeout.ms", INT, 9_000, Bounds(1_000), MEDIUM, READ_ONLY, ACTS,
            "How soon a broker process that hangs is missed by those it shares metadata with."
            " One that dies is missed at once."),
    Setting("zookeeper.session.timeout.ms", INT, 18_000, None, HIGH, READ_ONLY, ACTS,
            "How long a silent session lives: how soon a broker is missed that hangs or is cut off."
            " One whose process dies is missed at once. 6000 is a good value in one data centre."),
    Setting("zookeeper.connection.timeout.ms", INT, None, None, HIGH, READ_ONLY,
            ACTS, "How long the first connection may take; unset, the session's time."),
    Setting("zookeeper.max.in.flight.requests", INT, 10, Bounds(1), HIGH, READ_ONLY,
            ACTS, "How many requests to ZooKeeper may be unanswered."),
    Setting("zookeeper.set.acl", BOOLEAN, False, None, HIGH, READ_ONLY,
            ACTS, "Whether brokers alone may write znodes; needs a certificate."),
    Setting("zookeeper.sync.time.ms", INT, 2000, None, LOW, READ_ONLY,
            INERT, "How far a follower of ZooKeeper's may be behind. Deprecated."),
    # Encryption.
    Setting("zookeeper.ssl.client.enable", BOOLEAN, False, None, MEDIUM, READ_ONLY,
            ACTS, "Whether the connection is encrypted."),
    Setting("zookeeper.clientCnxnSocket", STRING, None, None, MEDIUM, READ_ONLY,
            ACTS, "The socket class of Java's ZooKeeper client; with TLS it must be Netty's."),
    Setting("zookeeper.ssl.keystore.location", STRING, None, None, MEDIUM, READ_ONLY,
            ACTS, "The file with our certificate and key."),
    Setting("zookeeper.ssl.keystore.password", PASSWORD, None, None, MEDIUM, READ_ONLY,
            ACTS, "Its password."),
    Setting("zookeeper.ssl.keystore.type", STRING, None, None, MEDIUM, READ_ONLY,
            ACTS, "JKS, PKCS12 or PEM; unset, the ending of its name tells."),
    Setting("zookeeper.ssl.truststore.location", STRING, None, None, MEDIUM, READ_ONLY,
            ACTS, "The file with the certificates we trust."),
    Setting("zookeeper.ssl.truststore.password", PASSWORD, None, None, MEDIUM, READ_ONLY,
            ACTS, "Its password."),
    Setting("zookeeper.ssl.truststore.type", STRING, None, None, MEDIUM, READ_ONLY,
            ACTS, "JKS, PKCS12 or PEM; unset, the ending of its name tells."),
    Setting("zookeeper.ssl.protocol", STRING, "TLSv1.2", None, LOW, READ_ONLY,
            ACTS, "The version of TLS, where none is listed as allowed."),
    Setting("zookeeper.ssl.enabled.protocols", LIST, None, None, LOW, READ_ONLY,
            ACTS, "The versions of TLS allowed."),
    Setting("zookeeper.ssl.cipher.suites", LIST, None, None, LOW, READ_ONLY,
            ACTS, "The cipher suites allowed."),
    Setting("zookeeper.ssl.endpoint.identification.algorithm", STRING,
            "HTTPS", None, LOW, READ_ONLY,
            ACTS, "How the server's name is checked; empty: not at all."),
    Setting("zookeeper.ssl.crl.enable", BOOLEAN, False, None, LOW, READ_ONLY,
            ACTS, "Whether revocation lists are consulted; refused when true."),
    Setting("zookeeper.ssl.ocsp.enable", BOOLEAN, False, None, LOW, READ_ONLY,
            ACTS, "Whether revocation is asked online; refused when true."),
)
# fmt: on
