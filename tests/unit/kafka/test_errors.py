from __future__ import annotations

import pickle

import pytest
from confluent_kafka import KafkaError, KafkaException

from sluiceway.errors import ConnectError, FencedError, KafkaClientError
from sluiceway.kafka.errors import mapped_errors, to_connect_error


@pytest.mark.parametrize("code", [KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH])
def test_every_error_code_of_fencing_becomes_a_fenced_error(code: int) -> None:
    assert isinstance(to_connect_error(KafkaError(code), "write"), FencedError)


def test_other_errors_keep_librdkafkas_name_and_pickle() -> None:
    with pytest.raises(KafkaClientError, match="Cannot write") as caught, mapped_errors("write"):
        raise KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT))
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert (again.code, str(again)) == ("_MSG_TIMED_OUT", str(caught.value))
    assert isinstance(again, ConnectError)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        *((code, "Check bootstrap.servers") for code in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)),
        *((code, "Check bootstrap.servers") for code in (KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE)),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "needs READ on the consumer group"),
        (KafkaError._MSG_TIMED_OUT, None),
    ],
)
def test_errors_say_what_to_do_where_their_name_tells(code: int, advice: str | None) -> None:
    said = str(to_connect_error(KafkaError(code), "describe topic 'c'"))
    assert said.startswith("Cannot describe topic 'c': ")
    assert said.endswith(").") if advice is None else advice in said
