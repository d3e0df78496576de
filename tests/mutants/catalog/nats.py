"""The sources and the sink of NATS JetStream."""

from mutants.mutant import Mutant

_CLIENT, _PULLS, _STREAM, _CONSUMER, _PUBLISHER, _SINK = (
    f"connectors/nats/{name}.py" for name in ("client", "pulls", "stream_source", "consumer_source", "publisher", "sink")
)
_LOGINS = "tests/integration/test_nats.py::"
_STREAMS, _CONSUMERS, _SINKS = (
    f"tests/integration/test_nats_{name}.py::" for name in ("stream_source", "consumer_source", "sink")
)

MUTANTS = (
    Mutant(
        "nats-tls-left-out",
        _CLIENT,
        '                    raise NoTlsError("it has no TLS")\n',
        "                    pass\n",
        "A password is sent without TLS although the config demands it.",
        tests=(f"{_LOGINS}test_tls_that_is_demanded_is_never_left_out",),
    ),
    Mutant(
        "nats-headers-twice",
        _CLIENT,
        "            found.pairs.append((key, value.decode()))\n",
        "            found.pairs = [*((name, old) for name, old in found.pairs if name != key), (key, value.decode())]\n",
        "Of several headers of a name, all but one are lost.",
        tests=(f"{_STREAMS}test_a_record_has_the_message_its_subject_time_and_sequence",),
    ),
    Mutant(
        "nats-large-message",
        _PULLS,
        "            self._one_only = True\n",
        "            pass\n",
        "A message that is larger than a request may be is never read.",
        tests=(f"{_STREAMS}test_a_message_that_is_larger_than_a_request_may_be_is_read",),
    ),
    Mutant(
        "nats-missed",
        _STREAM,
        "        self._count_missed(reading, state, position + 1, state.first)\n",
        "",
        "Messages that were purged before they were read are not told of.",
        tests=(f"{_STREAMS}test_a_purge_beside_the_task_is_told_of_once",),
    ),
    Mutant(
        "nats-created-again",
        _STREAM,
        "        if reading.created is not None and reading.created != state.created:\n",
        "        if False:\n",
        "A stream that was created again is read from the middle.",
        tests=(f"{_STREAMS}test_a_stream_that_was_created_again_fails_the_task_with_what_to_do",),
    ),
    Mutant(
        "nats-begin-forgotten",
        _STREAM,
        "        return [(each.partition, each.offset(each.position or _NOTHING)) for each in readings]\n",
        "        return []\n",
        "A stream that is read from its end loses what comes before the first message after a restart.",
        tests=(f"{_STREAMS}test_a_begin_that_was_found_is_kept",),
    ),
    Mutant(
        "nats-end-by-subject",
        _STREAM,
        "            reading.at_end = about is not None and not about.pending and about.number == reading.number\n",
        "            pass\n",
        "A scheduled run with a filter waits without end for a message of its subject.",
        tests=(f"{_STREAMS}test_a_run_ends_although_the_last_messages_are_of_other_subjects",),
    ),
    Mutant(
        "nats-extend",
        _CONSUMER,
        '            session.publish([each.reply for each in handles], b"+WPI")\n',
        "            pass\n",
        "Messages that wait for Kafka are delivered again to other tasks.",
        tests=(f"{_CONSUMERS}test_what_waits_for_kafka_is_not_delivered_again",),
    ),
    Mutant(
        "nats-give-back",
        _CONSUMER,
        '        self._answer(handles, b"-NAK")\n',
        "",
        "A paused task keeps messages from other clients until their deadline.",
        tests=(f"{_CONSUMERS}test_a_task_gives_back_what_it_has_not_sent_when_it_pauses",),
    ),
    Mutant(
        "nats-delivered-twice",
        _CONSUMER,
        "        if delivery.sequence in self._held:\n",
        "        if False:\n",
        "A message that is delivered twice is two records.",
        tests=(f"{_CONSUMERS}test_a_message_that_is_delivered_twice_is_one_record",),
    ),
    Mutant(
        "nats-drained",
        _CONSUMER,
        "        return state is not None and not state.pending and not state.unacknowledged\n",
        "        return state is not None and not state.pending\n",
        "A scheduled run leaves what a killed client had.",
        tests=(f"{_CONSUMERS}test_a_run_waits_for_what_another_client_has_and_does_not_acknowledge",),
    ),
    Mutant(
        "nats-no-stream",
        _PUBLISHER,
        "            self._untaken[index] = None\n",
        "            self._results[index] = DONE\n",
        "A record whose subject no stream takes is lost.",
        tests=(f"{_SINKS}test_a_subject_that_no_stream_takes_is_a_bad_record",),
    ),
    Mutant(
        "nats-denied",
        _PUBLISHER,
        "            if self._items[index].subject.lower() == subject:\n",
        "            if self._items[index].subject == subject:\n",
        "A record of a subject that the user may not publish to is published without end.",
        tests=(f"{_SINKS}test_a_subject_that_the_user_may_not_publish_to_is_a_bad_record",),
    ),
    Mutant(
        "nats-ids-of-several-records",
        _SINK,
        '        return found if repeat is None else f"{found}-{repeat}"\n',
        "        return found\n",
        "Of several records that a transform has made of one message, the stream drops all but one.",
        tests=(f"{_SINKS}test_several_records_of_one_message_are_all_written",),
    ),
    Mutant(
        "nats-api-subjects",
        _SINK,
        '    if subject.startswith("$") and not subject.startswith(("$KV.", "$O.")):\n',
        "    if False:\n",
        "A record whose key is a request of JetStream's deletes a stream.",
        tests=(f"{_SINKS}test_the_servers_own_subjects_are_refused",),
    ),
)
