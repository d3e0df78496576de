"""FileStreamSource and FileStreamSink: lines of a file."""
