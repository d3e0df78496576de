"""How the mirror's Kafka clients log in by OAuth, as Kafka's own clients declare it, described in our words."""

from __future__ import annotations

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import OneOf, Range, UniqueList
from sluiceway.connectors.mirror.classes import known_class

OAUTH = ConfigDef(
    [
        ConfigKey(
            name="sasl.oauthbearer.jwt.retriever.class",
            type=Type.CLASS,
            default="org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
            importance=Importance.MEDIUM,
            loader=known_class,
            doc="Full name of the JwtRetriever that gets tokens. The default picks one of the others by the rest of the "
            "config, as older clients did. Kafka has these in org.apache.kafka.common.security.oauthbearer.*: "
            "ClientCredentialsJwtRetriever, DefaultJwtRetriever, FileJwtRetriever and JwtBearerJwtRetriever.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.jwt.validator.class",
            type=Type.CLASS,
            default="org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
            importance=Importance.MEDIUM,
            loader=known_class,
            doc="Full name of the JwtValidator that checks tokens. The default picks one of the others by the rest of the "
            "config, as older clients did. Kafka has these in org.apache.kafka.common.security.oauthbearer.*: "
            "BrokerJwtValidator, ClientJwtValidator and DefaultJwtValidator.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.scope",
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            doc="What the token is to give access to: a scope that the identity provider knows. The option <code>scope</code> "
            "in sasl.jaas.config, which is deprecated, counts only where this is not set.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.client.credentials.client.id",
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            doc="By what id the identity provider knows this client. The option <code>clientId</code> in sasl.jaas.config, "
            "which is deprecated, counts only where this is not set.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.client.credentials.client.secret",
            type=Type.PASSWORD,
            default=None,
            importance=Importance.MEDIUM,
            doc="What proves to the identity provider that the client is who it says. The option <code>clientSecret</code> in "
            "sasl.jaas.config, which is deprecated, counts only where this is not set.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.algorithm",
            type=Type.STRING,
            default="RS256",
            importance=Importance.MEDIUM,
            validator=OneOf(("ES256", "RS256"), ignore_case=True),
            doc="How JWT assertions are signed; named in their header <code>alg</code>. Ignored if "
            "sasl.oauthbearer.assertion.file is set.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.claim.aud",
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            doc="For whom JWT assertions made here are meant: their claim <code>aud</code>. Ignored if "
            "sasl.oauthbearer.assertion.file is set.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.claim.exp.seconds",
            type=Type.INT,
            default=300,
            importance=Importance.LOW,
            validator=Range(0, 86400),
            doc="A JWT assertion expires this many seconds after it is made: its claim <code>exp</code>. Ignored if "
            "sasl.oauthbearer.assertion.file is set.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.claim.iss",
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            doc="Who issues JWT assertions made here: their claim <code>iss</code>. Ignored if "
            "sasl.oauthbearer.assertion.file is set.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.claim.jti.include",
            type=Type.BOOLEAN,
            default=False,
            importance=Importance.MEDIUM,
            doc="Whether each JWT assertion gets an id of its own, the claim <code>jti</code>. Ignored if "
            "sasl.oauthbearer.assertion.file is set.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.claim.nbf.seconds",
            type=Type.INT,
            default=60,
            importance=Importance.LOW,
            validator=Range(0, 3600),
            doc="A JWT assertion counts as valid from this many seconds before it is made: its claim <code>nbf</code>. "
            "Ignored if sasl.oauthbearer.assertion.file is set.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.claim.sub",
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            doc="Whom JWT assertions made here are about: their claim <code>sub</code>. Ignored if "
            "sasl.oauthbearer.assertion.file is set.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.file",
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            doc="Path of a JWT assertion made beforehand: header, claims and signature in base 64, joined by dots (RFC 7515, "
            "RFC 7519). Read again when it changes, with no need to restart. Where it is set, no other "
            "sasl.oauthbearer.assertion.* key counts.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.private.key.file",
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            doc="Path of the private key (PEM) that signs JWT assertions. Read again when it changes, with no need to "
            "restart. Ignored if sasl.oauthbearer.assertion.file is set.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.private.key.passphrase",
            type=Type.PASSWORD,
            default=None,
            importance=Importance.MEDIUM,
            doc="Opens sasl.oauthbearer.assertion.private.key.file if that is encrypted. A key that replaces it while the "
            "client runs needs the same passphrase; for another one, change this and restart. Ignored if "
            "sasl.oauthbearer.assertion.file is set.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.template.file",
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            doc="Path of a file with fixed headers and claims to put into JWT assertions, for what a certain identity "
            "provider asks for. Ignored if sasl.oauthbearer.assertion.file is set.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.scope.claim.name",
            type=Type.STRING,
            default="scope",
            importance=Importance.LOW,
            doc="Which claim of a token holds its scope, where the provider does not call it scope.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.sub.claim.name",
            type=Type.STRING,
            default="sub",
            importance=Importance.LOW,
            doc="Which claim of a token holds its subject, where the provider does not call it sub.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.token.endpoint.url",
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            doc="Where tokens come from. An HTTP(S) URL is the provider's endpoint, asked in the way of "
            "sasl.oauthbearer.jwt.retriever.class; a file URL names a file that holds a token, a serialised JWT.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.jwks.endpoint.url",
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            doc="Where the provider's public keys (JWKS, RFC 7517) are. A broker reads an HTTP(S) URL when it starts, every "
            "sasl.oauthbearer.jwks.endpoint.refresh.ms, and whenever a token names a key (kid) that it has not seen; a "
            "file URL it reads only at the start, and it refuses tokens with keys that are not there.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.jwks.endpoint.refresh.ms",
            type=Type.LONG,
            default=3600000,
            importance=Importance.LOW,
            doc="After how many milliseconds a broker reads the provider's public keys (JWKS) anew.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
            type=Type.LONG,
            default=10000,
            importance=Importance.LOW,
            doc="Most milliseconds between two attempts to read the public keys (JWKS); waits start at "
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms and double until then.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
            type=Type.LONG,
            default=100,
            importance=Importance.LOW,
            doc="Milliseconds before reading the public keys (JWKS) is tried a second time; each further wait is twice as "
            "long, up to sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.clock.skew.seconds",
            type=Type.INT,
            default=30,
            importance=Importance.LOW,
            doc="By how many seconds the clocks of provider and broker may differ.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.expected.audience",
            type=Type.LIST,
            default=[],
            importance=Importance.LOW,
            validator=UniqueList(allow_empty=True),
            doc="Audiences, separated by commas. If any are named, a broker refuses tokens whose claim aud is none of them.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.expected.issuer",
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            doc="If set, a broker refuses tokens whose claim iss is not exactly this.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.header.urlencode",
            type=Type.BOOLEAN,
            default=False,
            importance=Importance.LOW,
            doc="Whether client_id and client_secret are URL-encoded in the authorization header, as RFC 6749, section 2.3.1, "
            "asks. Off by default, as older clients did not.",
        ),
    ]
)
