"""The contract of a converter."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from sluiceway.api import Converter, SchemaAndValue
from sluiceway.config.definition import ConfigDef
from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Schema, Struct
from sluiceway.errors import ConnectError
from sluiceway.testing.checks import breach, fingerprint, no_error, only_these_errors, outcome
from sluiceway.testing.options import OptionsContract

_TOPIC = "contract"
_GARBAGE = (b"", b"\x00", b"\xff\xfe\xfa", b"{", b'{"schema":1}', b"\x00" * 5, b"\x00\x00\x00\x00\x01\x02", b"[1,2", b"null")
_STRUCT = Schema.struct({"id": INT64_SCHEMA, "name": STRING_SCHEMA})


class ConverterContract(OptionsContract):
    """Subclass as ``Test...``; set ``converter_class`` and ``options`` (without ``value.converter.``), override ``samples``.

    Override ``expected`` if the format does not keep everything, for example the schema.
    """

    converter_class: ClassVar[type[Converter]]
    is_key: ClassVar[bool] = False
    allowed_errors: ClassVar[tuple[type[Exception], ...]] = (ConnectError,)

    def samples(self) -> Sequence[SchemaAndValue]:
        """Return values with schemas that the converter can write and read; new objects at each call."""
        raise NotImplementedError("Override samples(): return SchemaAndValue objects that the converter can write.")

    def expected(self, sample: SchemaAndValue) -> SchemaAndValue:
        """Return the value that reading a written sample must return."""
        return sample

    def subject(self) -> type[Converter]:
        return self.converter_class

    def definition(self) -> ConfigDef:
        """Return the options that users set."""
        return ConfigDef(key for key in super().definition() if key.name != "converter.type")  # the worker sets it

    def configure(self, instance: Any, options: Mapping[str, str]) -> None:
        instance.configure(options, is_key=self.is_key)

    def test_samples_are_read_back(self) -> None:
        for sample, data in self._written():
            back = self.configured().to_connect_data(_TOPIC, data)
            expected = self.expected(sample)
            if fingerprint(tuple(back)) != fingerprint(tuple(expected)):
                advice = "Keep schema and value, or override expected() if the format does not keep them"
                breach(
                    self._where("to_connect_data"),
                    f"returned {tuple(back)!r} instead of {tuple(expected)!r} for {data!r}",
                    advice,
                )

    def test_what_is_written_is_bytes(self) -> None:
        for sample, data in self._written():
            if data is not None and type(data) is not bytes:
                breach(
                    self._where("from_connect_data"), f"returned a {type(data).__name__} for {sample!r}", "Return bytes or None"
                )

    def test_null_stays_null(self) -> None:
        converter = self.configured()
        advice = "Accept None, the value of a tombstone: write None, or bytes that are read as None"
        with no_error(self._where("to_connect_data"), advice):
            read = converter.to_connect_data(_TOPIC, None)
        with no_error(self._where("from_connect_data"), advice):
            data = converter.from_connect_data(_TOPIC, None, None)
            back = converter.to_connect_data(_TOPIC, data)
        for found in (read, back):
            if found.value is not None:
                breach(self._where("to_connect_data"), f"returned {found.value!r} for a null", advice)

    def test_the_encoder_writes_the_same_bytes(self) -> None:
        converter = self.configured()
        encoders: dict[tuple[str, Schema | None], Any] = {}
        for topic in (_TOPIC, "another"):
            for schema, value in [*self.samples(), *self.samples()]:
                encode = encoders.setdefault((topic, schema), converter.encoder(topic, schema))
                plain, fast = outcome(self.configured().from_connect_data, topic, schema, value), outcome(encode, value)
                if plain != fast:
                    advice = "Return a function that does the same as from_connect_data"
                    breach(self._where("encoder"), f"returned {fast} for {value!r} with {schema}, not {plain}", advice)

    def test_the_decoder_reads_the_same_values(self) -> None:
        converter = self.configured()
        for topic in (_TOPIC, "another"):
            decode = converter.decoder(topic)
            for data in [None, *self._readable(), *self._unreadable(), *self._readable()]:
                plain = outcome(lambda data=data, topic=topic: tuple(self.configured().to_connect_data(topic, data)))
                fast = outcome(lambda data=data, decode=decode: tuple(decode(data)))
                if plain != fast:
                    advice = "Return a function that does the same as to_connect_data"
                    breach(self._where("decoder"), f"returned {fast} for {data!r}, not {plain}", advice)

    def test_bytes_of_another_format_raise_an_error_of_connects(self) -> None:
        converter = self.configured()
        for data in self._unreadable():
            advice = f"Raise DataError for bytes in another format (here: {data!r})"
            with only_these_errors(self._where("to_connect_data"), self.allowed_errors, advice):
                converter.to_connect_data(_TOPIC, data)

    def test_values_that_cannot_be_written_raise_an_error_of_connects(self) -> None:
        converter = self.configured()
        struct = Struct(_STRUCT, {"id": 1, "name": "n"})
        wrong: list[tuple[Schema | None, object]] = [
            *((schema, value) for schema in (STRING_SCHEMA, INT64_SCHEMA, _STRUCT) for value in (1, "text", None, [1], struct)),
            *((None, value) for value in (1, "text", {"a": [1, None]}, object())),
        ]
        for schema, value in wrong:
            advice = f"Raise DataError for a value that cannot be written (here: {value!r} with {schema})"
            with only_these_errors(self._where("from_connect_data"), self.allowed_errors, advice):
                converter.from_connect_data(_TOPIC, schema, value)

    def test_the_value_is_left_as_it_was(self) -> None:
        converter = self.configured()
        for schema, value in self.samples():
            before = fingerprint(value)
            outcome(converter.from_connect_data, _TOPIC, schema, value)
            if fingerprint(value) != before:
                breach(self._where("from_connect_data"), f"changed the value {value!r}", "Copy it before you change it")

    def _written(self) -> Iterator[tuple[SchemaAndValue, bytes | None]]:
        converter = self.configured()
        for sample in self.samples():
            advice = f"Support the sample {tuple(sample)!r}, or remove it from samples()"
            with no_error(self._where("from_connect_data"), advice):
                data = converter.from_connect_data(_TOPIC, *sample)
            yield sample, data

    def _readable(self) -> list[bytes]:
        return [data for _, data in self._written() if data is not None]

    def _unreadable(self) -> list[bytes]:
        """Return garbage, and readable bytes truncated or with a changed byte; the same at each call."""
        chance = random.Random(4)  # noqa: S311 (test data)
        corrupt = [chance.randbytes(length) for length in (1, 3, 4, 8, 64)]
        for data in self._readable():
            corrupt += [data[:-1], data[: len(data) // 2], data + b"\x00"]
            for _ in range(3):
                index = chance.randrange(len(data) or 1)
                corrupt.append(data[:index] + bytes([chance.randrange(256)]) + data[index + 1 :])
        return [*_GARBAGE, *corrupt]
