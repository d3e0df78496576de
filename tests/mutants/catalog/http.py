"""The HTTP source, the receiver of webhooks, and the sink."""

from mutants.mutant import Mutant

_CLIENT, _SINK, _REQUESTS, _READER, _POSITION, _PAGING, _WEBHOOK, _SIGNATURES = (
    f"connectors/http/{name}.py"
    for name in ("client", "sink", "requests", "reader", "position", "paging", "webhook", "signatures")
)
_DELIVERIES = "connectors/listening/deliveries.py"
_SINKS, _SOURCES = (f"tests/integration/test_http_{name}.py::" for name in ("sink", "source"))
_CONFIGS, _HOOKS = (f"tests/unit/connectors/http/test_{name}.py::" for name in ("config", "webhook"))

MUTANTS = (
    Mutant(
        "http-sink-overtakes",
        _SINK,
        "            if lane[0].lane is None:\n",
        "            if True:\n",
        "A record is sent although an earlier one of its partition must be sent again.",
        tests=(f"{_SINKS}test_what_may_pass_is_sent_again_in_order",),
    ),
    Mutant(
        "http-sink-drops-unanswered",
        _SINK,
        "        return [found.get(each, later) for each in items]\n",
        "        return [found.get(each, DONE) for each in items]\n",
        "Records whose request had no answer are taken for done.",
        tests=(f"{_SINKS}test_what_was_sent_of_a_put_is_not_sent_again",),
    ),
    Mutant(
        "http-sink-refused-batch",
        _SINK,
        "            self._send(items[half:], found)\n",
        "            found |= dict.fromkeys(items[half:], DONE)\n",
        "The second half of a request that was refused is lost.",
        tests=(f"{_SINKS}test_a_refused_record_is_reported_alone",),
    ),
    Mutant(
        "http-sink-key-of-first",
        _REQUESTS,
        "    if len(items) > 1:\n",
        "    if False:\n",
        "Requests of different records have one idempotency key, and the server drops the second one.",
        tests=(f"{_CONFIGS}test_idempotency_keys_differ_if_records_do",),
    ),
    Mutant(
        "http-sink-other-path",
        _REQUESTS,
        '        return quote(text, safe="")\n',
        "        return text\n",
        "A record's key leads a request to another path.",
        tests=(f"{_SINKS}test_urls_have_parts_of_records",),
    ),
    Mutant(
        "http-credentials-elsewhere",
        _CLIENT,
        "            if not follows or origin_of(target) != origin_of(first):\n",
        "            if False:\n",
        "A redirect takes the credentials to another server.",
        tests=(f"{_SINKS}test_redirects_are_not_followed_and_take_no_credentials",),
    ),
    Mutant(
        "http-next-page-elsewhere",
        _PAGING,
        "    if origin_of(url) != origin_of(answer.url):\n",
        "    if False:\n",
        "The URL of a next page takes the credentials to another server.",
        tests=(f"{_CONFIGS}test_the_last_page_of_numbers",),
    ),
    Mutant(
        "http-token-kept",
        _CLIENT,
        "            if self._token == token:\n                self._token = None\n",
        "            pass\n",
        "A token that was refused is not renewed.",
        tests=(f"{_SINKS}test_tokens_are_kept_and_renewed_when_refused",),
    ),
    Mutant(
        "http-source-page-wise",
        _READER,
        "            if options.ascending or page is None:\n",
        "            if True:\n",
        "A kill between the pages of a list with the newest items first loses the others.",
        tests=(f"{_SOURCES}test_a_task_that_ends_between_pages_loses_nothing",),
    ),
    Mutant(
        "http-source-order",
        _READER,
        "        if self._options.ascending and last is not None and is_after(last, values[cursor]):\n",
        "        if False:\n",
        "A list in another order than the config says loses items after a kill.",
        tests=(f"{_SOURCES}test_a_list_that_is_not_ascending_is_refused",),
    ),
    Mutant(
        "http-source-same-cursor",
        _POSITION,
        "        return is_after(known, values[cursor]) or hash_ in self.seen\n",
        "        return True\n",
        "Items that come later with the cursor of the last one are lost.",
        tests=(f"{_SOURCES}test_items_with_the_cursor_of_the_last_one_come_later",),
    ),
    Mutant(
        "http-webhook-early",
        _DELIVERIES,
        "        if self.left:\n            return False\n        self.delivered = True\n",
        "        self.delivered = True\n",
        "A request of several records is answered when Kafka has the first one.",
        tests=("tests/unit/connectors/observability/test_otlp_source.py::test_delivered_answers_when_kafka_has_all_points",),
    ),
    Mutant(
        "http-webhook-unacknowledged",
        _WEBHOOK,
        "        if not delivery.delivered:\n",
        "        if False:\n",
        "A webhook that Kafka does not have is answered with success.",
        tests=(f"{_HOOKS}test_a_task_that_stops_lets_clients_send_again",),
    ),
    Mutant(
        "http-webhook-refused-known",
        _WEBHOOK,
        "            if known is not None and (known.delivered or not known.ended.is_set()):\n",
        "            if known is not None:\n",
        "A delivery that was refused is never taken.",
        tests=(f"{_HOOKS}test_a_delivery_that_was_refused_is_not_remembered",),
    ),
    Mutant(
        "http-webhook-unsigned",
        _WEBHOOK,
        "        if not self._options.guard.has_signed(request.headers, body):\n",
        "        if False:\n",
        "A webhook with a wrong signature is taken.",
        tests=(f"{_HOOKS}test_githubs_signatures",),
    ),
    Mutant(
        "http-webhook-old-signature",
        _SIGNATURES,
        "abs(self.clock() - int(at)) > self.tolerance",
        "False",
        "A request that somebody has recorded can be sent again later.",
        tests=(f"{_HOOKS}test_stripes_signatures_have_a_time",),
    ),
)
