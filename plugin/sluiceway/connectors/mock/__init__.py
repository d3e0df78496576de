"""MockSource and MockSink: fail, hang, slow down or send bad records when their config says so."""
