"""How the mirror's Kafka clients log in, as Kafka's own clients declare it. Its texts are part of what REST answers."""

from __future__ import annotations

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import Range
from sluiceway.connectors.mirror.classes import known_class

SASL = ConfigDef(
    [
        ConfigKey(
            name="sasl.kerberos.service.name", type=Type.STRING, default=None, importance=Importance.MEDIUM,
            doc="The Kerberos principal name that Kafka runs as. This can be defined either in Kafka's JAAS config or in "
                "Kafka's config.",
        ),
        ConfigKey(
            name="sasl.kerberos.kinit.cmd", type=Type.STRING, default="/usr/bin/kinit", importance=Importance.LOW,
            doc="Kerberos kinit command path.",
        ),
        ConfigKey(
            name="sasl.kerberos.ticket.renew.window.factor", type=Type.DOUBLE, default=0.8, importance=Importance.LOW,
            doc="Login thread will sleep until the specified window factor of time from last refresh to ticket's expiry "
                "has been reached, at which time it will try to renew the ticket.",
        ),
        ConfigKey(
            name="sasl.kerberos.ticket.renew.jitter", type=Type.DOUBLE, default=0.05, importance=Importance.LOW,
            doc="Percentage of random jitter added to the renewal time.",
        ),
        ConfigKey(
            name="sasl.kerberos.min.time.before.relogin", type=Type.LONG, default=60000, importance=Importance.LOW,
            doc="Login thread sleep time between refresh attempts.",
        ),
        ConfigKey(
            name="sasl.login.refresh.window.factor", type=Type.DOUBLE, default=0.8, importance=Importance.LOW,
            validator=Range(0.5, 1.0),
            doc="Login refresh thread will sleep until the specified window factor relative to the credential's lifetime "
                "has been reached, at which time it will try to refresh the credential. Legal values are between 0.5 (50%) "
                "and 1.0 (100%) inclusive; a default value of 0.8 (80%) is used if no value is specified. Currently "
                "applies only to OAUTHBEARER.",
        ),
        ConfigKey(
            name="sasl.login.refresh.window.jitter", type=Type.DOUBLE, default=0.05, importance=Importance.LOW,
            validator=Range(0.0, 0.25),
            doc="The maximum amount of random jitter relative to the credential's lifetime that is added to the login "
                "refresh thread's sleep time. Legal values are between 0 and 0.25 (25%) inclusive; a default value of 0.05 "
                "(5%) is used if no value is specified. Currently applies only to OAUTHBEARER.",
        ),
        ConfigKey(
            name="sasl.login.refresh.min.period.seconds", type=Type.SHORT, default=60, importance=Importance.LOW,
            validator=Range(0, 900),
            doc="The desired minimum time for the login refresh thread to wait before refreshing a credential, in seconds. "
                "Legal values are between 0 and 900 (15 minutes); a default value of 60 (1 minute) is used if no value is "
                "specified.  This value and  sasl.login.refresh.buffer.seconds are both ignored if their sum exceeds the "
                "remaining lifetime of a credential. Currently applies only to OAUTHBEARER.",
        ),
        ConfigKey(
            name="sasl.login.refresh.buffer.seconds", type=Type.SHORT, default=300, importance=Importance.LOW,
            validator=Range(0, 3600),
            doc="The amount of buffer time before credential expiration to maintain when refreshing a credential, in "
                "seconds. If a refresh would otherwise occur closer to expiration than the number of buffer seconds then "
                "the refresh will be moved up to maintain as much of the buffer time as possible. Legal values are between "
                "0 and 3600 (1 hour); a default value of  300 (5 minutes) is used if no value is specified. This value and "
                "sasl.login.refresh.min.period.seconds are both ignored if their sum exceeds the remaining lifetime of a "
                "credential. Currently applies only to OAUTHBEARER.",
        ),
        ConfigKey(
            name="sasl.mechanism", type=Type.STRING, default="GSSAPI", importance=Importance.MEDIUM,
            doc="SASL mechanism used for client connections. This may be any mechanism for which a security provider is "
                "available. GSSAPI is the default mechanism.",
        ),
        ConfigKey(
            name="sasl.jaas.config", type=Type.PASSWORD, default=None, importance=Importance.MEDIUM,
            doc="JAAS login context parameters for SASL connections in the format used by JAAS configuration files. JAAS "
                "configuration file format is described <a "
                'href="https://docs.oracle.com/javase/8/docs/technotes/guides/security/jgss/tutorials/LoginConfigFile.html">'
                "here</a>. "
                "The format for the value is: <code>loginModuleClass controlFlag (optionName=optionValue)*;</code>. For "
                "brokers, the config must be prefixed with listener prefix and SASL mechanism name in lower-case. For "
                "example, listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=com.example.ScramLoginModule required;",
        ),
        ConfigKey(
            name="sasl.client.callback.handler.class", type=Type.CLASS, default=None, importance=Importance.MEDIUM,
            loader=known_class,
            doc="The fully qualified name of a SASL client callback handler class that implements the "
                "AuthenticateCallbackHandler interface.",
        ),
        ConfigKey(
            name="sasl.login.callback.handler.class", type=Type.CLASS, default=None, importance=Importance.MEDIUM,
            loader=known_class,
            doc="The fully qualified name of a SASL login callback handler class that implements the "
                "AuthenticateCallbackHandler interface. For brokers, login callback handler config must be prefixed with "
                "listener prefix and SASL mechanism name in lower-case. For example, "
                "listener.name.sasl_ssl.scram-sha-256.sasl.login.callback.handler.class=com.example.CustomScramLoginCallbackHandler",
        ),
        ConfigKey(
            name="sasl.login.class", type=Type.CLASS, default=None, importance=Importance.MEDIUM,
            loader=known_class,
            doc="The fully qualified name of a class that implements the Login interface. For brokers, login config must "
                "be prefixed with listener prefix and SASL mechanism name in lower-case. For example, "
                "listener.name.sasl_ssl.scram-sha-256.sasl.login.class=com.example.CustomScramLogin",
        ),
        ConfigKey(
            name="sasl.login.connect.timeout.ms", type=Type.INT, default=None, importance=Importance.LOW,
            doc="The (optional) value in milliseconds for the external authentication provider connection timeout. "
                "Currently applies only to OAUTHBEARER.",
        ),
        ConfigKey(
            name="sasl.login.read.timeout.ms", type=Type.INT, default=None, importance=Importance.LOW,
            doc="The (optional) value in milliseconds for the external authentication provider read timeout. Currently "
                "applies only to OAUTHBEARER.",
        ),
        ConfigKey(
            name="sasl.login.retry.backoff.max.ms", type=Type.LONG, default=10000, importance=Importance.LOW,
            doc="The (optional) value in milliseconds for the maximum wait between login attempts to the external "
                "authentication provider. Login uses an exponential backoff algorithm with an initial wait based on the "
                "sasl.login.retry.backoff.ms setting and will double in wait length between attempts up to a maximum wait "
                "length specified by the sasl.login.retry.backoff.max.ms setting. Currently applies only to OAUTHBEARER.",
        ),
        ConfigKey(
            name="sasl.login.retry.backoff.ms", type=Type.LONG, default=100, importance=Importance.LOW,
            doc="The (optional) value in milliseconds for the initial wait between login attempts to the external "
                "authentication provider. Login uses an exponential backoff algorithm with an initial wait based on the "
                "sasl.login.retry.backoff.ms setting and will double in wait length between attempts up to a maximum wait "
                "length specified by the sasl.login.retry.backoff.max.ms setting. Currently applies only to OAUTHBEARER.",
        ),
    ]
)  # fmt: skip
