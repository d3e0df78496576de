"""How the mirror's Kafka clients use TLS, as Kafka's own clients declare it, described in our words."""

from __future__ import annotations

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import UniqueList
from sluiceway.connectors.mirror.classes import known_class

SSL = ConfigDef(
    [
        ConfigKey(
            name="ssl.protocol",
            type=Type.STRING,
            default="TLSv1.3",
            importance=Importance.MEDIUM,
            doc="The newest TLS version to speak, as far as Java knows it. With TLSv1.3 clients still go down to TLSv1.2 for "
            "a server that has no better, if ssl.enabled.protocols allows it; with TLSv1.2 they never use TLSv1.3, "
            "whatever ssl.enabled.protocols says.",
        ),
        ConfigKey(
            name="ssl.provider",
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            doc="Which security provider does TLS; null: Java's own choice.",
        ),
        ConfigKey(
            name="ssl.cipher.suites",
            type=Type.LIST,
            default=[],
            importance=Importance.LOW,
            validator=UniqueList(allow_empty=True),
            doc="Cipher suites that may be used, separated by commas; empty: every one that is at hand.",
        ),
        ConfigKey(
            name="ssl.enabled.protocols",
            type=Type.LIST,
            default=["TLSv1.2", "TLSv1.3"],
            importance=Importance.MEDIUM,
            validator=UniqueList(allow_empty=True),
            doc="TLS versions that may be used; the newest that both sides know is taken. Empty: those that Java has switched "
            "on, which differ from release to release. ssl.protocol can narrow them further.",
        ),
        ConfigKey(
            name="ssl.keystore.type",
            type=Type.STRING,
            default="JKS",
            importance=Importance.MEDIUM,
            doc="Format of ssl.keystore.location: JKS, PKCS12 or PEM, unless ssl.engine.factory.class knows others.",
        ),
        ConfigKey(
            name="ssl.keystore.location",
            type=Type.STRING,
            default=None,
            importance=Importance.HIGH,
            doc="Path of the file with the client's own key and certificate, for servers that ask for one.",
        ),
        ConfigKey(
            name="ssl.keystore.password",
            type=Type.PASSWORD,
            default=None,
            importance=Importance.HIGH,
            doc="Opens ssl.keystore.location; not for PEM files, which have none.",
        ),
        ConfigKey(
            name="ssl.key.password",
            type=Type.PASSWORD,
            default=None,
            importance=Importance.HIGH,
            doc="Decrypts the private key, be it in ssl.keystore.location or in ssl.keystore.key.",
        ),
        ConfigKey(
            name="ssl.keystore.key",
            type=Type.PASSWORD,
            default=None,
            importance=Importance.HIGH,
            doc="The client's private key itself, in place of a file: PEM, PKCS#8. An encrypted one needs ssl.key.password. "
            "ssl.keystore.type says its format.",
        ),
        ConfigKey(
            name="ssl.keystore.certificate.chain",
            type=Type.PASSWORD,
            default=None,
            importance=Importance.HIGH,
            doc="The client's X.509 certificates themselves, in place of a file: PEM. ssl.keystore.type says their format.",
        ),
        ConfigKey(
            name="ssl.truststore.certificates",
            type=Type.PASSWORD,
            default=None,
            importance=Importance.HIGH,
            doc="The X.509 certificates to trust, in place of a file: PEM. ssl.truststore.type says their format.",
        ),
        ConfigKey(
            name="ssl.truststore.type",
            type=Type.STRING,
            default="JKS",
            importance=Importance.MEDIUM,
            doc="Format of ssl.truststore.location: JKS, PKCS12 or PEM, unless ssl.engine.factory.class knows others.",
        ),
        ConfigKey(
            name="ssl.truststore.location",
            type=Type.STRING,
            default=None,
            importance=Importance.HIGH,
            doc="Path of the file with the certificates that are trusted.",
        ),
        ConfigKey(
            name="ssl.truststore.password",
            type=Type.PASSWORD,
            default=None,
            importance=Importance.HIGH,
            doc="Proves that ssl.truststore.location is intact; without it the file is read unchecked. Not for PEM files, "
            "which have none.",
        ),
        ConfigKey(
            name="ssl.keymanager.algorithm",
            type=Type.STRING,
            default="SunX509",
            importance=Importance.LOW,
            doc="How Java's key manager factory works; by default as the Java Virtual Machine is set up.",
        ),
        ConfigKey(
            name="ssl.trustmanager.algorithm",
            type=Type.STRING,
            default="PKIX",
            importance=Importance.LOW,
            doc="How Java's trust manager factory works; by default as the Java Virtual Machine is set up.",
        ),
        ConfigKey(
            name="ssl.endpoint.identification.algorithm",
            type=Type.STRING,
            default="https",
            importance=Importance.LOW,
            doc="How the server's name is checked against its certificate; empty: not at all.",
        ),
        ConfigKey(
            name="ssl.secure.random.implementation",
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            doc="Which of Java's sources of random numbers (SecureRandom) TLS draws on.",
        ),
        ConfigKey(
            name="ssl.engine.factory.class",
            type=Type.CLASS,
            default=None,
            importance=Importance.LOW,
            loader=known_class,
            doc="The SslEngineFactory that makes SSLEngine objects; null: "
            "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory. CommonNameLoggingSslEngineFactory beside it "
            "logs, at INFO, the common name in each expired certificate that a client shows a broker. It slows new mTLS "
            "connections slightly, and its own trust store is less tried than Java's: a possible risk.",
        ),
    ]
)
