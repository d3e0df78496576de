"""Parts of the tests of queue connectors under faults: publishers, and each source and sink with its server."""
