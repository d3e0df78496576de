"""A real HBase with its Thrift 2 server for tests."""
