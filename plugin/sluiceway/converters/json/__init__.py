"""The parts of JsonConverter: parsing, printing, envelopes, schemas, and values with and without a schema."""
