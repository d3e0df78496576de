"""Lists the keys of Kafka's Java clients with their types, to validate ``producer.override.*`` and the like."""

from __future__ import annotations

from sluiceway.config.parsing import Type

_SHARED: dict[Type, str] = {
    Type.BOOLEAN: """
        enable.metrics.push sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.header.urlencode
    """,
    Type.CLASS: """
        sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class
        sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class ssl.engine.factory.class
    """,
    Type.DOUBLE: """
        sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.window.factor
        sasl.login.refresh.window.jitter
    """,
    Type.INT: """
        metrics.num.samples receive.buffer.bytes request.timeout.ms sasl.login.connect.timeout.ms
        sasl.login.read.timeout.ms sasl.oauthbearer.assertion.claim.exp.seconds
        sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.clock.skew.seconds send.buffer.bytes
    """,
    Type.LIST: """
        bootstrap.servers config.providers metric.reporters sasl.oauthbearer.expected.audience ssl.cipher.suites
        ssl.enabled.protocols
    """,
    Type.LONG: """
        connections.max.idle.ms metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metrics.sample.window.ms
        reconnect.backoff.max.ms reconnect.backoff.ms retry.backoff.max.ms retry.backoff.ms
        sasl.kerberos.min.time.before.relogin sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
        sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms socket.connection.setup.timeout.max.ms
        socket.connection.setup.timeout.ms
    """,
    Type.PASSWORD: """
        sasl.jaas.config sasl.oauthbearer.assertion.private.key.passphrase
        sasl.oauthbearer.client.credentials.client.secret ssl.key.password ssl.keystore.certificate.chain
        ssl.keystore.key ssl.keystore.password ssl.truststore.certificates ssl.truststore.password
    """,
    Type.SHORT: """
        sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    """,
    Type.STRING: """
        client.dns.lookup client.id metadata.recovery.strategy metrics.recording.level sasl.kerberos.kinit.cmd
        sasl.kerberos.service.name sasl.mechanism sasl.oauthbearer.assertion.algorithm
        sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.sub
        sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
        sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
        sasl.oauthbearer.expected.issuer sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.scope
        sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
        security.protocol security.providers ssl.endpoint.identification.algorithm ssl.keymanager.algorithm
        ssl.keystore.location ssl.keystore.type ssl.protocol ssl.provider ssl.secure.random.implementation
        ssl.trustmanager.algorithm ssl.truststore.location ssl.truststore.type
    """,
}

_PRODUCER: dict[Type, str] = {
    Type.BOOLEAN: """
        enable.idempotence partitioner.adaptive.partitioning.enable partitioner.ignore.keys
        transaction.two.phase.commit.enable
    """,
    Type.CLASS: """
        key.serializer partitioner.class value.serializer
    """,
    Type.INT: """
        batch.size compression.gzip.level compression.lz4.level compression.zstd.level delivery.timeout.ms
        max.in.flight.requests.per.connection max.request.size retries transaction.timeout.ms
    """,
    Type.LIST: """
        interceptor.classes
    """,
    Type.LONG: """
        buffer.memory linger.ms max.block.ms metadata.max.idle.ms partitioner.availability.timeout.ms
    """,
    Type.STRING: """
        acks compression.type transactional.id
    """,
}

_CONSUMER: dict[Type, str] = {
    Type.BOOLEAN: """
        allow.auto.create.topics check.crcs enable.auto.commit exclude.internal.topics
        internal.throw.on.fetch.stable.offset.unsupported
    """,
    Type.CLASS: """
        key.deserializer value.deserializer
    """,
    Type.INT: """
        auto.commit.interval.ms default.api.timeout.ms fetch.max.bytes fetch.max.wait.ms fetch.min.bytes
        heartbeat.interval.ms max.partition.fetch.bytes max.poll.interval.ms max.poll.records session.timeout.ms
    """,
    Type.LIST: """
        interceptor.classes partition.assignment.strategy
    """,
    Type.STRING: """
        auto.offset.reset client.rack group.id group.instance.id group.protocol group.remote.assignor isolation.level
        share.acknowledgement.mode share.acquire.mode
    """,
}

_ADMIN: dict[Type, str] = {
    Type.INT: """
        default.api.timeout.ms retries
    """,
    Type.LIST: """
        bootstrap.controllers
    """,
}


def _by_name(own: dict[Type, str]) -> dict[str, Type]:
    return {name: type_ for table in (_SHARED, own) for type_, names in table.items() for name in names.split()}


CLIENT_KEYS = {"producer": _by_name(_PRODUCER), "consumer": _by_name(_CONSUMER), "admin": _by_name(_ADMIN)}
"""The type of each key by client: producer, consumer or admin."""
