"""How the mirror's Kafka clients log in by OAuth, as Kafka's own clients declare it. Its texts are part of what REST answers."""

from __future__ import annotations

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import OneOf, Range, UniqueList
from sluiceway.connectors.mirror.classes import known_class

OAUTH = ConfigDef(
    [
        ConfigKey(
            name="sasl.oauthbearer.jwt.retriever.class", type=Type.CLASS,
            default="org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever", importance=Importance.MEDIUM,
            loader=known_class,
            doc="<p>The fully-qualified class name of a <code>JwtRetriever</code> implementation used to request tokens "
                "from the identity provider.</p><p>The default configuration value represents a class that maintains "
                "backward compatibility with previous versions of Apache Kafka. The default implementation uses the "
                "configuration to determine which concrete implementation to create.<p>Other implementations that are "
                "provided "
                "include:</p><ul><li><code>org.apache.kafka.common.security.oauthbearer.ClientCredentialsJwtRetriever</code></li><li><code>org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever</code></li><li><code>org.apache.kafka.common.security.oauthbearer.FileJwtRetriever</code></li><li><code>org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever</code></li></ul>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.jwt.validator.class", type=Type.CLASS,
            default="org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator", importance=Importance.MEDIUM,
            loader=known_class,
            doc="<p>The fully-qualified class name of a <code>JwtValidator</code> implementation used to validate the JWT "
                "from the identity provider.</p><p>The default validator "
                "(<code>org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator</code>) maintains backward "
                "compatibility with previous versions of Apache Kafka. The default validator uses configuration to "
                "determine which concrete implementation to create.<p>The built-in <code>JwtValidator</code> "
                "implementations "
                "are:</p><ul><li><code>org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator</code></li><li><code>org.apache.kafka.common.security.oauthbearer.ClientJwtValidator</code></li><li><code>org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator</code></li></ul>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.scope", type=Type.STRING, default=None, importance=Importance.MEDIUM,
            doc="<p>This is the level of access a client application is granted to a resource or API which is included in "
                "the token request. If provided, it should match one or more scopes configured in the identity "
                "provider.</p><p>The scope was previously stored as part of the <code>sasl.jaas.config</code> "
                "configuration with the key <code>scope</code>. For backward compatibility, the <code>scope</code> JAAS "
                "option can still be used, but it is deprecated and will be removed in a future version.</p><p>Order of "
                "precedence:</p><ul><li><code>sasl.oauthbearer.scope</code> from configuration</li><li><code>scope</code> "
                "from JAAS</li></ul>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.client.credentials.client.id", type=Type.STRING, default=None, importance=Importance.MEDIUM,
            doc="<p>The ID (defined in/by the OAuth identity provider) to identify the client requesting the "
                "token.</p><p>The client ID was previously stored as part of the <code>sasl.jaas.config</code> "
                "configuration with the key <code>clientId</code>. For backward compatibility, the <code>clientId</code> "
                "JAAS option can still be used, but it is deprecated and will be removed in a future version.</p><p>Order "
                "of precedence:</p><ul><li><code>sasl.oauthbearer.client.credentials.client.id</code> from "
                "configuration</li><li><code>clientId</code> from JAAS</li></ul>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.client.credentials.client.secret", type=Type.PASSWORD,
            default=None, importance=Importance.MEDIUM,
            doc="<p>The secret (defined by either the user or preassigned, depending on the identity provider) of the "
                "client requesting the token.</p><p>The client secret was previously stored as part of the "
                "<code>sasl.jaas.config</code> configuration with the key <code>clientSecret</code>. For backward "
                "compatibility, the <code>clientSecret</code> JAAS option can still be used, but it is deprecated and will "
                "be removed in a future version.</p><p>Order of "
                "precedence:</p><ul><li><code>sasl.oauthbearer.client.credentials.client.secret</code> from "
                "configuration</li><li><code>clientSecret</code> from JAAS</li></ul>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.algorithm", type=Type.STRING, default="RS256", importance=Importance.MEDIUM,
            validator=OneOf(("ES256", "RS256"), ignore_case=True),
            doc="<p>The algorithm the Apache Kafka client should use to sign the assertion sent to the identity provider. "
                "It is also used as the value of the OAuth <code>alg</code> (Algorithm) header in the JWT "
                "assertion.</p><p><em>Note</em>: If a value for <code>sasl.oauthbearer.assertion.file</code> is provided, "
                "this configuration will be ignored.</p>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.claim.aud", type=Type.STRING, default=None, importance=Importance.MEDIUM,
            doc="<p>The JWT <code>aud</code> (Audience) claim which will be included in the  client JWT assertion created "
                "locally.</p><p><em>Note</em>: If a value for <code>sasl.oauthbearer.assertion.file</code> is provided, "
                "this configuration will be ignored.</p>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.claim.exp.seconds", type=Type.INT, default=300, importance=Importance.LOW,
            validator=Range(0, 86400),
            doc="<p>The number of seconds <em>in the future</em> for which the JWT is valid. The value is used to "
                "determine the JWT <code>exp</code> (Expiration) claim based on the current system time when the JWT is "
                "created.</p><p>The formula to generate the <code>exp</code> claim is very simple:</p><pre>Let:\n\n  x = "
                "the current timestamp in seconds, on client\n  y = the value of this configuration\n\nThen:\n\n  exp = x "
                "+ y\n</pre><p><em>Note</em>: If a value for <code>sasl.oauthbearer.assertion.file</code> is provided, "
                "this configuration will be ignored.</p>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.claim.iss", type=Type.STRING, default=None, importance=Importance.MEDIUM,
            doc="<p>The value to be used as the <code>iss</code> (Issuer) claim which will be included in the client JWT "
                "assertion created locally.</p><p><em>Note</em>: If a value for "
                "<code>sasl.oauthbearer.assertion.file</code> is provided, this configuration will be ignored.</p>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.claim.jti.include", type=Type.BOOLEAN, default=False, importance=Importance.MEDIUM,
            doc="<p>Flag that determines if the JWT assertion should generate a unique ID for the JWT and include it in "
                "the <code>jti</code> (JWT ID) claim.</p><p><em>Note</em>: If a value for "
                "<code>sasl.oauthbearer.assertion.file</code> is provided, this configuration will be ignored.</p>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.claim.nbf.seconds", type=Type.INT, default=60, importance=Importance.LOW,
            validator=Range(0, 3600),
            doc="<p>The number of seconds <em>in the past</em> from which the JWT is valid. The value is used to determine "
                "the JWT <code>nbf</code> (Not Before) claim based on the current system time when the JWT is "
                "created.</p><p>The formula to generate the <code>nbf</code> claim is very simple:</p><pre>Let:\n\n  x = "
                "the current timestamp in seconds, on client\n  y = the value of this configuration\n\nThen:\n\n  nbf = x "
                "- y\n</pre><p><em>Note</em>: If a value for <code>sasl.oauthbearer.assertion.file</code> is provided, "
                "this configuration will be ignored.</p>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.claim.sub", type=Type.STRING, default=None, importance=Importance.MEDIUM,
            doc="<p>The value to be used as the <code>sub</code> (Subject) claim which will be included in the client JWT "
                "assertion created locally.</p><p><em>Note</em>: If a value for "
                "<code>sasl.oauthbearer.assertion.file</code> is provided, this configuration will be ignored.</p>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.file", type=Type.STRING, default=None, importance=Importance.MEDIUM,
            doc="<p>File that contains a <em>pre-generated</em> JWT assertion.</p><p>The underlying implementation caches "
                "the file contents to avoid the performance hit of loading the file on each access. The caching mechanism "
                "will detect whenthe file changes to allow for the file to be reloaded on modifications. This allows for "
                "&quot;live&quot; assertion rotation without restarting the Kafka client.</p><p>The file contains the "
                "assertion in the serialized, three part JWT format:</p><ol><li>The <em>header</em> section is a base "
                "64-encoded JWT header that contains values like <code>alg</code> (Algorithm), <code>typ</code> (Type, "
                "always the literal value <code>JWT</code>), etc.</li><li>The <em>payload</em> section includes the base "
                "64-encoded set of JWT claims, such as <code>aud</code> (Audience), <code>iss</code> (Issuer), "
                "<code>sub</code> (Subject), etc.</li><li>The <em>signature</em> section is the concatenated "
                "<em>header</em> and <em>payload</em> sections that was signed using a private key</li></ol><p>See <a "
                'href="https://datatracker.ietf.org/doc/html/rfc7519">RFC 7519</a> and <a '
                'href="https://datatracker.ietf.org/doc/html/rfc7515">RFC 7515</a> for more details on the JWT and JWS '
                "formats.</p><p><em>Note</em>: If a value for <code>sasl.oauthbearer.assertion.file</code> is provided, "
                "all other <code>sasl.oauthbearer.assertion.</code>* configurations are ignored.</p>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.private.key.file", type=Type.STRING, default=None, importance=Importance.MEDIUM,
            doc="<p>File that contains a private key in the standard PEM format which is used to sign the JWT assertion "
                "sent to the identity provider.</p><p>The underlying implementation caches the file contents to avoid the "
                "performance hit of loading the file on each access. The caching mechanism will detect when the file "
                "changes to allow for the file to be reloaded on modifications. This allows for &quot;live&quot; private "
                "key rotation without restarting the Kafka client.</p><p><em>Note</em>: If a value for "
                "<code>sasl.oauthbearer.assertion.file</code> is provided, this configuration will be ignored.</p>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.private.key.passphrase", type=Type.PASSWORD,
            default=None, importance=Importance.MEDIUM,
            doc="<p>The optional passphrase to decrypt the private key file specified by "
                "<code>sasl.oauthbearer.assertion.private.key.file</code>.</p><p><em>Note</em>: If the file referred to by "
                "<code>sasl.oauthbearer.assertion.private.key.file</code> is modified on the file system at runtime and it "
                "was created with a <em>different</em> passphrase than it was previously, the client will not be able to "
                "access the private key file because the passphrase is now out of date. For that reason, when using "
                "private key passphrases, either use the same passphrase each time, or&mdash;for improved "
                "security&mdash;restart the Kafka client using the new passphrase configuration.</p><p><em>Note</em>: If a "
                "value for <code>sasl.oauthbearer.assertion.file</code> is provided, this configuration will be "
                "ignored.</p>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.assertion.template.file", type=Type.STRING, default=None, importance=Importance.MEDIUM,
            doc="<p>This optional configuration specifies the file containing the JWT headers and/or payload claims to be "
                "used when creating the JWT assertion.</p><p>Not all identity providers require the same set of claims; "
                "some may require a given claim while others may prohibit it. In order to provide the most flexibility, "
                "this configuration allows the user to provide the static header values and claims that are to be included "
                "in the JWT.</p><p><em>Note</em>: If a value for <code>sasl.oauthbearer.assertion.file</code> is provided, "
                "this configuration will be ignored.</p>",
        ),
        ConfigKey(
            name="sasl.oauthbearer.scope.claim.name", type=Type.STRING, default="scope", importance=Importance.LOW,
            doc='The OAuth claim for the scope is often named "scope", but this (optional) setting can provide a different '
                "name to use for the scope included in the JWT payload's claims if the OAuth/OIDC provider uses a "
                "different name for that claim.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.sub.claim.name", type=Type.STRING, default="sub", importance=Importance.LOW,
            doc='The OAuth claim for the subject is often named "sub", but this (optional) setting can provide a different '
                "name to use for the subject included in the JWT payload's claims if the OAuth/OIDC provider uses a "
                "different name for that claim.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.token.endpoint.url", type=Type.STRING, default=None, importance=Importance.MEDIUM,
            doc="The URL for the OAuth/OIDC identity provider. If the URL is HTTP(S)-based, it is the issuer's token "
                "endpoint URL to which requests will be made to login based on the configuration in "
                "<code>sasl.oauthbearer.jwt.retriever.class</code>. If the URL is file-based, it specifies a file "
                "containing an access token (in JWT serialized form) issued by the OAuth/OIDC identity provider to use for "
                "authorization.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.jwks.endpoint.url", type=Type.STRING, default=None, importance=Importance.MEDIUM,
            doc="The OAuth/OIDC provider URL from which the provider's <a "
                'href="https://datatracker.ietf.org/doc/html/rfc7517#section-5">JWKS (JSON Web Key Set)</a> can be '
                "retrieved. The URL can be HTTP(S)-based or file-based. If the URL is HTTP(S)-based, the JWKS data will be "
                "retrieved from the OAuth/OIDC provider via the configured URL on broker startup. All then-current keys "
                "will be cached on the broker for incoming requests. If an authentication request is received for a JWT "
                "that includes a \"kid\" header claim value that isn't yet in the cache, the JWKS endpoint will be queried "
                "again on demand. However, the broker polls the URL every sasl.oauthbearer.jwks.endpoint.refresh.ms "
                "milliseconds to refresh the cache with any forthcoming keys before any JWT requests that include them are "
                "received. If the URL is file-based, the broker will load the JWKS file from a configured location on "
                "startup. In the event that the JWT includes a \"kid\" header value that isn't in the JWKS file, the "
                "broker will reject the JWT and authentication will fail.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.jwks.endpoint.refresh.ms", type=Type.LONG, default=3600000, importance=Importance.LOW,
            doc="The (optional) value in milliseconds for the broker to wait between refreshing its JWKS (JSON Web Key "
                "Set) cache that contains the keys to verify the signature of the JWT.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", type=Type.LONG, default=10000, importance=Importance.LOW,
            doc="The (optional) value in milliseconds for the maximum wait between attempts to retrieve the JWKS (JSON Web "
                "Key Set) from the external authentication provider. JWKS retrieval uses an exponential backoff algorithm "
                "with an initial wait based on the sasl.oauthbearer.jwks.endpoint.retry.backoff.ms setting and will double "
                "in wait length between attempts up to a maximum wait length specified by the "
                "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms setting.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", type=Type.LONG, default=100, importance=Importance.LOW,
            doc="The (optional) value in milliseconds for the initial wait between JWKS (JSON Web Key Set) retrieval "
                "attempts from the external authentication provider. JWKS retrieval uses an exponential backoff algorithm "
                "with an initial wait based on the sasl.oauthbearer.jwks.endpoint.retry.backoff.ms setting and will double "
                "in wait length between attempts up to a maximum wait length specified by the "
                "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms setting.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.clock.skew.seconds", type=Type.INT, default=30, importance=Importance.LOW,
            doc="The (optional) value in seconds to allow for differences between the time of the OAuth/OIDC identity "
                "provider and the broker.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.expected.audience", type=Type.LIST, default=[], importance=Importance.LOW,
            validator=UniqueList(allow_empty=True),
            doc="The (optional) comma-delimited setting for the broker to use to verify that the JWT was issued for one of "
                'the expected audiences. The JWT will be inspected for the standard OAuth "aud" claim and if this value is '
                "set, the broker will match the value from JWT's \"aud\" claim  to see if there is an exact match. If "
                "there is no match, the broker will reject the JWT and authentication will fail.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.expected.issuer", type=Type.STRING, default=None, importance=Importance.LOW,
            doc="The (optional) setting for the broker to use to verify that the JWT was created by the expected issuer. "
                'The JWT will be inspected for the standard OAuth "iss" claim and if this value is set, the broker will '
                "match it exactly against what is in the JWT's \"iss\" claim. If there is no match, the broker will reject "
                "the JWT and authentication will fail.",
        ),
        ConfigKey(
            name="sasl.oauthbearer.header.urlencode", type=Type.BOOLEAN, default=False, importance=Importance.LOW,
            doc="The (optional) setting to enable the OAuth client to URL-encode the client_id and client_secret in the "
                "authorization header in accordance with RFC6749, see <a "
                'href="https://datatracker.ietf.org/doc/html/rfc6749#section-2.3.1">here</a> for more details. The default '
                "value is set to 'false' for backward compatibility",
        ),
    ]
)  # fmt: skip
