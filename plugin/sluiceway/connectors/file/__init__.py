"""FileStreamSource and FileStreamSink: read and write lines of a file."""
