"""The source of folders on S3: tags, listings in the order of keys, and notifications."""

from mutants.mutant import Mutant

_TASK, _LISTING = "connectors/folder/task.py", "connectors/folder/key_listing.py"
_HINTS, _OBJECTS = "connectors/folder/notifications.py", "connectors/files/filesystem/objects.py"
_S3 = ("tests/integration/test_folder_source_s3.py",)
_SQS = ("tests/integration/test_folder_source_sqs.py",)

MUTANTS = (
    Mutant(
        "folder-tag-others",
        _OBJECTS,
        "                self._fs.put_tags(path, {**tags, key: value})\n",
        "                self._fs.put_tags(path, {key: value})\n",
        "An object that gets a tag loses its others.",
        tests=_S3,
    ),
    Mutant(
        "folder-tag-folded",
        _TASK,
        "        return self._finished.folded(self._present, self._handling.unhandled)\n",
        "        return self._finished.folded(self._present)\n",
        "Objects that were read before a crash are never tagged.",
        tests=_S3,
    ),
    Mutant(
        "folder-tag-again",
        _TASK,
        "        if not (stored.tagged and self._handling.stays):\n",
        "        if True:\n",
        "Each start asks for the tags of all objects that were read.",
        tests=_S3,
    ),
    Mutant(
        "folder-keys-after",
        _LISTING,
        '            last[prefix] = "" if is_whole else self._last.get(prefix, "")\n',
        '            last[prefix] = ""\n',
        "Each scan lists all keys.",
        tests=_S3,
    ),
    Mutant(
        "folder-keys-match",
        _LISTING,
        "                if self._is_wanted(path) and is_match(path, patterns):\n                    found[path] = status\n",
        "                last[prefix] = path\n                if self._is_wanted(path) and is_match(path, patterns):\n"
        "                    found[path] = status\n",
        "An object that does not match hides all new ones that sort before it.",
        tests=_S3,
    ),
    Mutant(
        "folder-keys-whole",
        _LISTING,
        "            self._whole_due = ended + max(self._whole_seconds, _BUSY_SHARE * (ended - began))\n",
        '            self._whole_due = float("inf")\n',
        "Objects that do not sort after the last one are never read.",
        tests=_S3,
    ),
    Mutant(
        "folder-keys-unmarked",
        _TASK,
        "            new = self._unread({**self._unmarked, **found})\n",
        "            new = self._unread(found)\n",
        "An object whose marker comes after it was listed is read an hour later.",
        tests=_S3,
    ),
    Mutant(
        "folder-keys-forgotten",
        _TASK,
        "            self._present.update(found)\n            self._drop",
        "            self._present = found\n            self._drop",
        "Objects that were not listed are forgotten, and read again.",
        tests=_S3,
    ),
    Mutant(
        "folder-keys-gone",
        _TASK,
        "[path for path in self._readers if self._storage.seems_gone(file_of(path))]",
        "[]",
        "An object that is deleted before it is complete is asked for each second.",
        tests=_S3,
    ),
    Mutant(
        "folder-hint-encoded",
        _HINTS,
        "unquote_plus(each['s3']['object']['key'])",
        "each['s3']['object']['key']",
        "A notification of a key with a blank is of no use.",
        tests=_SQS,
    ),
    Mutant(
        "folder-hint-early",
        _HINTS,
        "        if self._look({path for path, share in shares.items() if share is Share.MINE}):\n",
        "        self._delete(own)\n        if self._look({path for path, share in shares.items() if share is Share.MINE}):\n",
        "A message is gone before the task has looked at its objects.",
        tests=_SQS,
    ),
    Mutant(
        "folder-hint-others",
        _HINTS,
        "            (others if owner is Share.ANOTHERS else own).append(each)\n",
        "            own.append(each)\n",
        "A task deletes the messages for another one.",
        tests=_SQS,
    ),
    Mutant(
        "folder-hint-release",
        _HINTS,
        "        self._release(others)\n",
        "",
        "A message that another task received comes two minutes late.",
        tests=_SQS,
    ),
    Mutant(
        "folder-hint-pause",
        _HINTS,
        "        self._pause = min(max(2 * self._pause, _FIRST_PAUSE), _LONGEST_PAUSE) if only_others else 0.0\n",
        "        self._pause = 0.0\n",
        "A message for a task that is away is received all the time, and each request costs money.",
        tests=_SQS,
    ),
    Mutant(
        "folder-hint-stopped",
        _HINTS,
        "        if self._stopped.is_set():\n            self._release(messages)\n            return\n",
        "        if self._stopped.is_set():\n            return\n",
        "A task that is stopped takes messages with it, which come two minutes late.",
        tests=_SQS,
    ),
    Mutant(
        "folder-hint-foreign",
        _HINTS,
        "            if paths is None:\n",
        "            paths = paths or []\n            if paths is None:\n",
        "Messages that are none of S3's are deleted.",
        tests=_SQS,
    ),
    Mutant(
        "folder-hint-marker",
        _TASK,
        "        return path.removesuffix(self._options.marker) if self._options.complete_when == keys.MARKER else path\n",
        "        return path\n",
        "An object is not looked at when its marker comes.",
        tests=_SQS,
    ),
)
