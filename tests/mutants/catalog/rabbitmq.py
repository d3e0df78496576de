"""RabbitMQ's sources and sink."""

from mutants.mutant import Mutant

_SESSION, _PUBLISHER = "connectors/rabbitmq/session.py", "connectors/rabbitmq/publisher.py"
_QUEUE, _STREAM, _SINK = (f"connectors/rabbitmq/{name}.py" for name in ("queue_source", "stream_source", "sink"))
_QUEUES, _STREAMS, _SINKS = (f"tests/integration/test_rabbitmq_{name}.py::" for name in ("queue_source", "stream_source", "sink"))
_UNITS = ("tests/unit/connectors/rabbitmq/test_messages.py",)

MUTANTS = (
    Mutant(
        "rabbitmq-prefetch",
        _QUEUE,
        "        session.prefetch(options.prefetch, of_all=options.is_global)\n",
        "",
        "A queue source takes more messages than it may hold.",
        tests=(f"{_QUEUES}test_a_task_holds_no_more_messages_than_the_prefetch_count",),
    ),
    Mutant(
        "rabbitmq-pause",
        _QUEUE,
        "        if self._stays_paused and self._consumers:\n",
        "        if False:\n",
        "A paused queue source keeps messages from other consumers.",
        tests=(f"{_QUEUES}test_a_paused_task_gives_its_messages_to_others_and_takes_them_again",),
    ),
    Mutant(
        "rabbitmq-idle",
        _QUEUE,
        "            self.give_back(())\n        session.run(seconds)\n",
        "            self.give_back(())\n        super().idle(seconds)\n",
        "A queue source that waits for Kafka sends no heartbeats, and loses its connection.",
        tests=(f"{_QUEUES}test_heartbeats_go_on_while_a_task_waits_for_kafka",),
    ),
    Mutant(
        "rabbitmq-drained",
        _QUEUE,
        "        return not self._unacknowledged and not any",
        "        return True or not any",
        "A scheduled run ends before a queue is empty.",
        tests=(f"{_QUEUES}test_a_run_goes_on_when_nothing_comes_because_of_late_acknowledgements",),
    ),
    Mutant(
        "rabbitmq-stream-as-queue",
        _QUEUE,
        "session.consume(queue, on_message, x_priority=0)",
        "session.consume(queue, on_message)",
        "A stream is read as a queue, and what comes while the task does not run is lost.",
        tests=(f"{_QUEUES}test_a_stream_is_not_read_as_a_queue",),
    ),
    Mutant(
        "rabbitmq-floats",
        _SESSION,
        "    pika.data.decode_value = decode_value\n",
        "",
        "Numbers of headers lose their decimal places.",
        tests=_UNITS,
    ),
    Mutant(
        "rabbitmq-late",
        _SESSION,
        """ or "timed out" in reason:\n""",
        ":\n",
        "A message that was held for too long fails the task.",
        tests=_UNITS,
    ),
    Mutant(
        "rabbitmq-gap",
        _STREAM,
        "                if offset > position + 1:\n",
        "                if False:\n",
        "Messages that a stream has removed unread are not told of.",
        tests=(f"{_STREAMS}test_messages_that_were_removed_unread_are_counted",),
    ),
    Mutant(
        "rabbitmq-went-back",
        _STREAM,
        "        if end is not None and end < seen:\n",
        "        if False:\n",
        "A stream that was created again is read from nowhere, without an error.",
        tests=(f"{_STREAMS}test_a_stream_that_was_created_again_fails_the_task_with_what_to_do",),
    ),
    Mutant(
        "rabbitmq-next",
        _STREAM,
        "        return [(self._partitions[name], {OFFSET: self._positions[name]}) for name in changed]\n",
        "        return []\n",
        "A stream that is read from its end loses what comes before the first message after a restart.",
        tests=(f"{_STREAMS}test_a_stream_that_is_read_from_its_end_keeps_the_end",),
    ),
    Mutant(
        "rabbitmq-unroutable",
        _PUBLISHER,
        "        if publication.returned:\n",
        "        if False:\n",
        "A message that no queue takes is lost.",
        tests=(f"{_SINKS}test_a_message_that_no_queue_takes_is_a_bad_record",),
    ),
    Mutant(
        "rabbitmq-nack",
        _PUBLISHER,
        "        elif accepted:\n",
        "        else:\n            publication.result = DONE\n        if False:\n",
        "A message that a full queue refuses is lost.",
        tests=(f"{_SINKS}test_a_queue_that_is_full_is_waited_for",),
    ),
    Mutant(
        "rabbitmq-blocked-twice",
        _SINK,
        "        fresh = [each for each in items if not each.sent]\n",
        "        fresh = list(items)\n",
        "A server that blocks publishers gets messages again.",
        tests=(f"{_SINKS}test_a_server_that_blocks_is_waited_for_and_gets_each_message_once",),
    ),
    Mutant(
        "rabbitmq-confirm-late",
        _SINK,
        "        results = [each.result or later for each in items]\n",
        "        results = [each.result or WriteResult(Outcome.DONE) for each in items]\n",
        "Records without a confirm are taken for done.",
        tests=(f"{_SINKS}test_a_server_that_blocks_is_waited_for_and_gets_each_message_once",),
    ),
)
