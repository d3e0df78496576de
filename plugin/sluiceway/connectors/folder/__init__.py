"""FolderSource: copies files, dumps, and logs of folders to Kafka."""
