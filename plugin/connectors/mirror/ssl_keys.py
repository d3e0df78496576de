"""How the mirror's Kafka clients use TLS, as Kafka's own clients declare it. Its texts are part of what REST answers."""

from __future__ import annotations

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import UniqueList
from sluiceway.connectors.mirror.classes import known_class

SSL = ConfigDef(
    [
        ConfigKey(
            name="ssl.protocol", type=Type.STRING, default="TLSv1.3", importance=Importance.MEDIUM,
            doc="The SSL protocol used to generate the SSLContext. The default is 'TLSv1.3', which should be fine for most "
                "use cases. A typical alternative to the default is 'TLSv1.2'. Allowed values for this config are "
                "dependent on the JVM. Clients using the defaults for this config and 'ssl.enabled.protocols' will "
                "downgrade to 'TLSv1.2' if the server does not support 'TLSv1.3'. If this config is set to 'TLSv1.2', "
                "however, clients will not use 'TLSv1.3' even if it is one of the values in "
                "<code>ssl.enabled.protocols</code> and the server only supports 'TLSv1.3'.",
        ),
        ConfigKey(
            name="ssl.provider", type=Type.STRING, default=None, importance=Importance.MEDIUM,
            doc="The name of the security provider used for SSL connections. Default value is the default security "
                "provider of the JVM.",
        ),
        ConfigKey(
            name="ssl.cipher.suites", type=Type.LIST, default=[], importance=Importance.LOW,
            validator=UniqueList(allow_empty=True),
            doc="A list of cipher suites. This is a named combination of authentication, encryption, MAC and key exchange "
                "algorithm used to negotiate the security settings for a network connection using TLS or SSL network "
                "protocol. By default all the available cipher suites are supported.",
        ),
        ConfigKey(
            name="ssl.enabled.protocols", type=Type.LIST, default=["TLSv1.2", "TLSv1.3"], importance=Importance.MEDIUM,
            validator=UniqueList(allow_empty=True),
            doc="The list of protocols enabled for SSL connections. The default is 'TLSv1.2,TLSv1.3'. This means that "
                "clients and servers will prefer TLSv1.3 if both support it and fallback to TLSv1.2 otherwise (assuming "
                "both support at least TLSv1.2). This default should be fine for most use cases. If this configuration is "
                "set to an empty list, Kafka will use the protocols enabled by default in the underlying SSLEngine, which "
                "may include additional protocols depending on the JVM version. Also see the config documentation for "
                "<code>ssl.protocol</code> to understand how it can impact the TLS version negotiation behavior.",
        ),
        ConfigKey(
            name="ssl.keystore.type", type=Type.STRING, default="JKS", importance=Importance.MEDIUM,
            doc="The file format of the key store file. This is optional for client. The values currently supported by the "
                "default <code>ssl.engine.factory.class</code> are [JKS, PKCS12, PEM].",
        ),
        ConfigKey(
            name="ssl.keystore.location", type=Type.STRING, default=None, importance=Importance.HIGH,
            doc="The location of the key store file. This is optional for client and can be used for two-way "
                "authentication for client.",
        ),
        ConfigKey(
            name="ssl.keystore.password", type=Type.PASSWORD, default=None, importance=Importance.HIGH,
            doc="The store password for the key store file. This is optional for client and only needed if "
                "'ssl.keystore.location' is configured. Key store password is not supported for PEM format.",
        ),
        ConfigKey(
            name="ssl.key.password", type=Type.PASSWORD, default=None, importance=Importance.HIGH,
            doc="The password of the private key in the key store file or the PEM key specified in 'ssl.keystore.key'.",
        ),
        ConfigKey(
            name="ssl.keystore.key", type=Type.PASSWORD, default=None, importance=Importance.HIGH,
            doc="Private key in the format specified by 'ssl.keystore.type'. Default SSL engine factory supports only PEM "
                "format with PKCS#8 keys. If the key is encrypted, key password must be specified using 'ssl.key.password'",
        ),
        ConfigKey(
            name="ssl.keystore.certificate.chain", type=Type.PASSWORD, default=None, importance=Importance.HIGH,
            doc="Certificate chain in the format specified by 'ssl.keystore.type'. Default SSL engine factory supports "
                "only PEM format with a list of X.509 certificates",
        ),
        ConfigKey(
            name="ssl.truststore.certificates", type=Type.PASSWORD, default=None, importance=Importance.HIGH,
            doc="Trusted certificates in the format specified by 'ssl.truststore.type'. Default SSL engine factory "
                "supports only PEM format with X.509 certificates.",
        ),
        ConfigKey(
            name="ssl.truststore.type", type=Type.STRING, default="JKS", importance=Importance.MEDIUM,
            doc="The file format of the trust store file. The values currently supported by the default "
                "<code>ssl.engine.factory.class</code> are [JKS, PKCS12, PEM].",
        ),
        ConfigKey(
            name="ssl.truststore.location", type=Type.STRING, default=None, importance=Importance.HIGH,
            doc="The location of the trust store file.",
        ),
        ConfigKey(
            name="ssl.truststore.password", type=Type.PASSWORD, default=None, importance=Importance.HIGH,
            doc="The password for the trust store file. If a password is not set, trust store file configured will still "
                "be used, but integrity checking is disabled. Trust store password is not supported for PEM format.",
        ),
        ConfigKey(
            name="ssl.keymanager.algorithm", type=Type.STRING, default="SunX509", importance=Importance.LOW,
            doc="The algorithm used by key manager factory for SSL connections. Default value is the key manager factory "
                "algorithm configured for the Java Virtual Machine.",
        ),
        ConfigKey(
            name="ssl.trustmanager.algorithm", type=Type.STRING, default="PKIX", importance=Importance.LOW,
            doc="The algorithm used by trust manager factory for SSL connections. Default value is the trust manager "
                "factory algorithm configured for the Java Virtual Machine.",
        ),
        ConfigKey(
            name="ssl.endpoint.identification.algorithm", type=Type.STRING, default="https", importance=Importance.LOW,
            doc="The endpoint identification algorithm to validate server hostname using server certificate. ",
        ),
        ConfigKey(
            name="ssl.secure.random.implementation", type=Type.STRING, default=None, importance=Importance.LOW,
            doc="The SecureRandom PRNG implementation to use for SSL cryptography operations. ",
        ),
        ConfigKey(
            name="ssl.engine.factory.class", type=Type.CLASS, default=None, importance=Importance.LOW,
            loader=known_class,
            doc="The class of type org.apache.kafka.common.security.auth.SslEngineFactory to provide SSLEngine objects. "
                "Default value is org.apache.kafka.common.security.ssl.DefaultSslEngineFactory. Alternatively, setting "
                "this to org.apache.kafka.common.security.ssl.CommonNameLoggingSslEngineFactory will log the common name "
                "of expired SSL certificates used by clients to authenticate at any of the brokers with log level INFO. "
                "Note that this will cause a tiny delay during establishment of new connections from mTLS clients to "
                "brokers due to the extra code for examining the certificate chain provided by the client. Note further "
                "that the implementation uses a custom truststore based on the standard Java truststore and thus might be "
                "considered a security risk due to not being as mature as the standard one.",
        ),
    ]
)  # fmt: skip
