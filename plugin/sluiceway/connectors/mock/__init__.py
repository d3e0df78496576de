"""MockSource and MockSink: fail, hang, slow down or send bad records as configured, for tests of failures."""
