"""The sources and the sinks of Amazon SQS and Kinesis."""

from mutants.mutant import Mutant

_SQS, _RECEIVERS, _REQUESTS, _SQS_SINK, _CLIENT, _READER, _SHARDS, _KINESIS, _RECORDS = (
    f"connectors/aws/{name}.py"
    for name in (
        *("sqs_source", "sqs_receivers", "requests", "sqs_sink", "client", "kinesis_reader", "kinesis_shards", "kinesis_source"),
        "kinesis_records",
    )
)
_QUEUES, _QUEUE_SINK, _STREAMS, _STREAM_SINK = (
    f"tests/integration/test_{name}.py::" for name in ("sqs_source", "sqs_sink", "kinesis_source", "kinesis_sink")
)
_RULES, _CONFIG = (f"tests/unit/connectors/aws/test_{name}.py::" for name in ("shards", "config"))

MUTANTS = (
    Mutant(
        "aws-sqs-extend",
        _SQS,
        "        due = [each for each in handles if each.deadline - now < each.queue.visibility * 2 / 3]\n",
        "        due: list[Receipt] = []\n",
        "Messages that wait for Kafka are received by others.",
        tests=(f"{_QUEUES}test_what_waits_for_kafka_is_not_received_by_others",),
    ),
    Mutant(
        "aws-sqs-delete-fails",
        _SQS,
        '            receipt.deleted = failure is None or bool(failure.get("SenderFault"))\n',
        "            receipt.deleted = True\n",
        "A message whose deletion fails is never deleted, and comes again.",
        tests=(f"{_QUEUES}test_deletes_that_fail_are_repeated_alone",),
    ),
    Mutant(
        "aws-sqs-give-back",
        _SQS,
        "        self._hide(handles, 0)\n",
        "",
        "A paused task keeps messages from others until their visibility timeout.",
        tests=(f"{_QUEUES}test_a_task_gives_back_what_it_has_not_sent_when_it_pauses",),
    ),
    Mutant(
        "aws-sqs-prefetch",
        _RECEIVERS,
        "            found = min(MOST_AT_ONCE, self._limit - self._taken.get(queue, 0))\n",
        "            found = MOST_AT_ONCE\n",
        "More messages are doubled at a kill than the config says.",
        tests=(f"{_QUEUES}test_a_task_holds_no_more_messages_than_it_may",),
    ),
    Mutant(
        "aws-sqs-late-answer",
        _RECEIVERS,
        "        if not wanted:\n            self._give_back(queue, found)\n",
        "",
        "What a request brings after a pause is hidden from others, and forgotten.",
        tests=(f"{_QUEUES}test_a_request_that_ends_after_the_pause_gives_its_messages_back",),
    ),
    Mutant(
        "aws-order-of-keys",
        _REQUESTS,
        "            wave = 0 if key is None else counts.get(key, 0)\n",
        "            wave = 0\n",
        "A record that fails is written behind later ones of its key.",
        tests=(f"{_RULES}test_waves_have_each_key_once_and_requests_are_limited",),
    ),
    Mutant(
        "aws-behind",
        _REQUESTS,
        "            numbers = [number for number in wave if self.order_key(items[number]) not in behind]\n",
        "            numbers = list(wave)\n",
        "Records of a key are written although an earlier one of it has failed.",
        tests=(f"{_STREAM_SINK}test_the_order_of_a_key_is_kept_when_records_fail",),
    ),
    Mutant(
        "aws-sink-entry-lost",
        _SQS_SINK,
        "    return WriteResult(Outcome.REFUSED if refused else Outcome.RETRY, failure_text(failure))\n",
        "    return WriteResult(Outcome.REFUSED, failure_text(failure)) if refused else DONE\n",
        "An entry that SQS does not take now is lost.",
        tests=(f"{_QUEUE_SINK}test_an_entry_that_sqs_does_not_take_now_is_sent_again_alone",),
    ),
    Mutant(
        "aws-ids-of-several-records",
        _SQS_SINK,
        '        return id_of(found if repeat is None else f"{found}-{repeat}")\n',
        "        return id_of(found)\n",
        "Of several records that a transform has made of one message, a FIFO queue drops all but one.",
        tests=(f"{_QUEUE_SINK}test_several_records_of_one_message_are_all_sent",),
    ),
    Mutant(
        "aws-secret-in-error",
        _CLIENT,
        '    return (str(error).strip().splitlines() or [""])[0][:_MOST_TOLD]\n',
        "    return str(error)\n",
        "The error of a refused signature shows the session token.",
        tests=(f"{_CONFIG}test_answers_have_a_meaning",),
    ),
    Mutant(
        "aws-parents-first",
        _KINESIS,
        "        return any(each in readers and not readers[each].position.ended for each in parents)\n",
        "        return False\n",
        "Records of a shard come before those of the one that it was split off.",
        tests=(f"{_STREAMS}test_a_split_shard_is_read_before_those_that_it_became",),
    ),
    Mutant(
        "aws-children-from-the-end",
        _SHARDS,
        "        elif follows(shard):\n            found[shard.id] = Position(since=OLDEST)\n",
        "",
        "A stream that is read from its end loses records at a reshard.",
        tests=(f"{_RULES}test_what_was_made_of_a_shard_that_was_read_is_read_from_its_beginning",),
    ),
    Mutant(
        "aws-trimmed",
        _READER,
        "        if not self._options.skips_trimmed:\n",
        "        if False:\n",
        "Records that were trimmed unread are not told of.",
        tests=(f"{_STREAMS}test_a_position_that_may_be_trimmed_fails_the_task_unless_that_is_allowed",),
    ),
    Mutant(
        "aws-latest-forgotten",
        _READER,
        "        if position == Position():  # records to come: after a restart, those that have come meanwhile\n",
        "        if False:\n",
        "A stream that is read from its end loses what comes before the first record after a restart.",
        tests=(f"{_STREAMS}test_a_position_that_was_found_is_kept",),
    ),
    Mutant(
        "aws-within-aggregated",
        _RECORDS,
        "            done = before.subsequence\n",
        "            pass\n",
        "The first records of an aggregated one are doubled after a restart.",
        tests=(f"{_STREAMS}test_aggregated_records_are_single_ones_and_may_be_continued_within",),
    ),
)
