"""Names of the files and folders that file sinks write. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from sluiceway.errors import DataError

_MAX_NAME_BYTES = 255
# Hive's, which Spark and Trino decode in names of partition folders.
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(0x20)))


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
        """Return the folder of a topic's files with this encoded partition."""
        return self.directory_delim.join(part for part in (self.topics_dir, topic, encoded_partition) if part)

    def name(self, topic: str, partition: int, first: int, last: int, extension: str, epoch: int = 0) -> str:
        """Return a file's name. Names of a later epoch differ from those written before offsets were set back."""
        parts = [topic, str(partition), f"{first:0{self.zero_pad}d}"]
        if self.with_last:
            parts.append(f"{last:0{self.zero_pad}d}")
        return f"{self.file_delim.join(parts)}{f'.e{epoch}' if epoch else ''}{extension}"


def escaped(text: str) -> str:
    """Return a field's value as part of a folder's name. Raises DataError if it is too long for a name."""
    name = "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)
    if name in ("", ".", ".."):
        name = "__HIVE_DEFAULT_PARTITION__" if not name else name.replace(".", "%2E")
    return name


def check_length(name: str) -> str:
    """Return a name of a folder. Raises DataError if it is longer than file systems allow."""
    if len(name.encode("utf-8", "surrogatepass")) > _MAX_NAME_BYTES:
        raise DataError(f"The folder name {name[:60]}... has more than {_MAX_NAME_BYTES} bytes. Partition by another field.")
    return name
