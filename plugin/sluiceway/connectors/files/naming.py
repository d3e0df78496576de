"""Names of the files and folders that file sinks write. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from sluiceway.connectors.path_elements import check_length, path_element


@dataclass(frozen=True, slots=True)
class FileNames:
    """Names the files of one topic partition as Confluent's sinks do.

    Attributes:
        topics_dir: the folder of all topics, without a slash at its end.
        file_delim: separates the parts of a name.
        zero_pad: the least number of digits of an offset.
        with_last: whether names end with the last offset too, as those of the HDFS sink do.
    """

    topics_dir: str
    directory_delim: str = "/"
    file_delim: str = "+"
    zero_pad: int = 10
    with_last: bool = True

    def folder(self, topic: str, encoded_partition: str) -> str:
        """Return the folder of a topic's files with this encoded partition. Raises DataError as ``topic_element``."""
        return self.directory_delim.join(part for part in (self.topics_dir, topic_element(topic), encoded_partition) if part)

    def name(self, topic: str, partition: int, first: int, last: int, extension: str, epoch: int = 0) -> str:
        """Return a file's name. Names of a later epoch differ from those written before offsets were set back."""
        parts = [topic, str(partition), f"{first:0{self.zero_pad}d}"]
        if self.with_last:
            parts.append(f"{last:0{self.zero_pad}d}")
        return f"{self.file_delim.join(parts)}{f'.e{epoch}' if epoch else ''}{extension}"


def topic_element(topic: str) -> str:
    """Return the folder's name of a topic, which transforms may have made of any text. Raises DataError if it is too long."""
    return check_length(path_element(topic))
