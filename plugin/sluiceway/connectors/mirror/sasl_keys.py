"""How the mirror's Kafka clients log in, as Kafka's own clients declare it, described in our words."""

from __future__ import annotations

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import Range
from sluiceway.connectors.mirror.classes import known_class

SASL = ConfigDef(
    [
        ConfigKey(
            name="sasl.kerberos.service.name",
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            doc="The brokers' Kerberos service name, if the JAAS config does not give it.",
        ),
        ConfigKey(
            name="sasl.kerberos.kinit.cmd",
            type=Type.STRING,
            default="/usr/bin/kinit",
            importance=Importance.LOW,
            doc="Path of the program kinit.",
        ),
        ConfigKey(
            name="sasl.kerberos.ticket.renew.window.factor",
            type=Type.DOUBLE,
            default=0.8,
            importance=Importance.LOW,
            doc="A Kerberos ticket is renewed after this share of its lifetime.",
        ),
        ConfigKey(
            name="sasl.kerberos.ticket.renew.jitter",
            type=Type.DOUBLE,
            default=0.05,
            importance=Importance.LOW,
            doc="At most what share of a ticket's lifetime its renewal is put off at random.",
        ),
        ConfigKey(
            name="sasl.kerberos.min.time.before.relogin",
            type=Type.LONG,
            default=60000,
            importance=Importance.LOW,
            doc="Milliseconds to wait after one attempt to renew a ticket before the next.",
        ),
        ConfigKey(
            name="sasl.login.refresh.window.factor",
            type=Type.DOUBLE,
            default=0.8,
            importance=Importance.LOW,
            validator=Range(0.5, 1.0),
            doc="A token is refreshed after this share of its lifetime, from 0.5 to 1.0. Only for OAUTHBEARER.",
        ),
        ConfigKey(
            name="sasl.login.refresh.window.jitter",
            type=Type.DOUBLE,
            default=0.05,
            importance=Importance.LOW,
            validator=Range(0.0, 0.25),
            doc="Share of a token's lifetime, from 0 to 0.25, by which its refresh is put off at random at most. Only for "
            "OAUTHBEARER.",
        ),
        ConfigKey(
            name="sasl.login.refresh.min.period.seconds",
            type=Type.SHORT,
            default=60,
            importance=Importance.LOW,
            validator=Range(0, 900),
            doc="A token is not refreshed within this many seconds of the last time, 0 to 900. Has no effect on a token that has "
            "less left than this and sasl.login.refresh.buffer.seconds together. Only for OAUTHBEARER.",
        ),
        ConfigKey(
            name="sasl.login.refresh.buffer.seconds",
            type=Type.SHORT,
            default=300,
            importance=Importance.LOW,
            validator=Range(0, 3600),
            doc="A token is refreshed at least this many seconds before it expires, 0 to 3600, earlier than otherwise planned "
            "if need be. Has no effect on a token that has less left than this and sasl.login.refresh.min.period.seconds "
            "together. Only for OAUTHBEARER.",
        ),
        ConfigKey(
            name="sasl.mechanism",
            type=Type.STRING,
            default="GSSAPI",
            importance=Importance.MEDIUM,
            doc="How clients log in by SASL: any mechanism that the security providers at hand offer.",
        ),
        ConfigKey(
            name="sasl.jaas.config",
            type=Type.PASSWORD,
            default=None,
            importance=Importance.MEDIUM,
            doc="How to log in: a login module with its options as a JAAS file has them, 'loginModuleClass controlFlag "
            "(optionName=optionValue)*;'. On a broker the key stands behind the listener's prefix and the mechanism in "
            "lower case: listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config.",
        ),
        ConfigKey(
            name="sasl.client.callback.handler.class",
            type=Type.CLASS,
            default=None,
            importance=Importance.MEDIUM,
            loader=known_class,
            doc="A class, by its full name, that answers the SASL client's questions: an AuthenticateCallbackHandler.",
        ),
        ConfigKey(
            name="sasl.login.callback.handler.class",
            type=Type.CLASS,
            default=None,
            importance=Importance.MEDIUM,
            loader=known_class,
            doc="A class, by its full name, that answers the login's questions: an AuthenticateCallbackHandler. On a broker "
            "the key stands behind the listener's prefix and the mechanism in lower case: "
            "listener.name.sasl_ssl.scram-sha-256.sasl.login.callback.handler.class.",
        ),
        ConfigKey(
            name="sasl.login.class",
            type=Type.CLASS,
            default=None,
            importance=Importance.MEDIUM,
            loader=known_class,
            doc="A class, by its full name, that logs in; it implements Login. On a broker the key stands behind the "
            "listener's prefix and the mechanism in lower case: listener.name.sasl_ssl.scram-sha-256.sasl.login.class.",
        ),
        ConfigKey(
            name="sasl.login.connect.timeout.ms",
            type=Type.INT,
            default=None,
            importance=Importance.LOW,
            doc="Milliseconds to wait for a connection to the login server. Only for OAUTHBEARER.",
        ),
        ConfigKey(
            name="sasl.login.read.timeout.ms",
            type=Type.INT,
            default=None,
            importance=Importance.LOW,
            doc="Milliseconds to wait for an answer of the login server. Only for OAUTHBEARER.",
        ),
        ConfigKey(
            name="sasl.login.retry.backoff.max.ms",
            type=Type.LONG,
            default=10000,
            importance=Importance.LOW,
            doc="Most milliseconds between two attempts to log in; waits start at sasl.login.retry.backoff.ms and double "
            "until then. Only for OAUTHBEARER.",
        ),
        ConfigKey(
            name="sasl.login.retry.backoff.ms",
            type=Type.LONG,
            default=100,
            importance=Importance.LOW,
            doc="Milliseconds before logging in is tried a second time; each further wait is twice as long, up to "
            "sasl.login.retry.backoff.max.ms. Only for OAUTHBEARER.",
        ),
    ]
)
