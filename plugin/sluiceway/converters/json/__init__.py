"""The parts of JsonConverter: parse and print JSON, convert schemas and values, cache envelopes."""
