"""The folder source with a server of the protocols of S3 and SQS, which sends S3's event notifications to queues."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from sluiceway.connectors.folder import notifications
from sluiceway.connectors.folder.connector import FolderSourceConnector
from sluiceway.connectors.folder.finished import bucket_of
from sluiceway.connectors.folder.notifications import queue_client
from sluiceway.connectors.shares import is_of_task
from support.eventually import eventually
from support.folder_task import FolderTask
from support.s3_server import S3Server, s3_server

_names = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as made:
        yield made


@pytest.fixture(autouse=True)
def short_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "_WAIT_SECONDS", 1)
    monkeypatch.setattr(notifications, "_FIRST_PAUSE", 0.05)


class Bucket:
    """A bucket of its own for a test, and its queue."""

    def __init__(self, server: S3Server) -> None:
        self.name = f"bucket{next(_names)}"
        self._server = server
        self.fs: Any = server.files()
        self.fs.mkdir(self.name)
        options = {"key": "key", "secret": "secret", "client_kwargs": {"region_name": "us-east-1"}}
        self.client = queue_client(f"{server.url}/1/queue", options)
        self.queue: str = self.client.create_queue(QueueName=self.name)["QueueUrl"]
        self.tasks: list[FolderTask] = []

    def notify(self) -> None:
        """Send S3's own notifications to the queue."""
        arn = self.client.get_queue_attributes(QueueUrl=self.queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        queues = {"QueueConfigurations": [{"QueueArn": arn, "Events": ["s3:ObjectCreated:*"]}]}
        self.fs.call_s3("put_bucket_notification_configuration", Bucket=self.name, NotificationConfiguration=queues)

    def write(self, path: str, data: bytes) -> None:
        self.fs.pipe_file(f"{self.name}/{path}", data)

    def send(self, path: str, *more: str, name: str = "ObjectCreated:Put") -> None:
        """Send a notification as S3 does, of a key that is URL-encoded already."""
        records = [{"eventName": name, "s3": {"bucket": {"name": self.name}, "object": {"key": key}}} for key in (path, *more)]
        self.send_text(json.dumps({"Records": records}))

    def send_text(self, text: str) -> None:
        self.client.send_message(QueueUrl=self.queue, MessageBody=text)

    def messages(self) -> tuple[int, int]:
        """Return how many messages are visible, and how many are not."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.client.get_queue_attributes(QueueUrl=self.queue, AttributeNames=names)["Attributes"]
        return int(found[names[0]]), int(found[names[1]])

    def config(self, pattern: str = "in/**") -> dict[str, str]:
        access = {key: value for key, value in self._server.config.items() if key != "s3.bucket.name"}
        more = {"scan.interval.ms": "3600000", "notifications.sqs.queue.url": self.queue}
        config = {"paths": f"s3://{self.name}/{pattern}", "mode": "files", "topic": "t", "complete.when": "renamed"}
        return {**config, **more, **access}

    def task(self, pattern: str = "in/**", **more: str) -> FolderTask:
        made = FolderTask(**{**self.config(pattern), **more})
        self.tasks.append(made)
        return made

    def eventually_has(self, task: FolderTask, values: list[str]) -> None:
        """Poll a task, which makes no scans, until it has made records, and the queue is empty."""

        def has() -> bool:
            task.take(task.task.poll() or [])
            return [record.value for record in task.records] == values and self.messages() == (0, 0)

        eventually(has, what=f"{values} and no messages")


@pytest.fixture
def bucket(server: S3Server) -> Iterator[Bucket]:
    made = Bucket(server)
    yield made
    for each in made.tasks:
        each.stop()


def test_an_object_is_read_when_s3_says_that_it_is_there(bucket: Bucket, server: S3Server) -> None:
    bucket.notify()
    task = bucket.task("in/**/*.txt")
    before = len(server.requests())
    bucket.write("in/2026 11/ü+%41&=.txt", b"one\n")
    bucket.eventually_has(task, ["one"])
    bucket.write("in/no.csv", b"no\n")
    bucket.write("other/no.txt", b"no\n")
    bucket.write("in/2026 11/ü+%41&=.txt", b"two\n")
    bucket.eventually_has(task, ["one", "two"])
    assert not [each for each in server.requests()[before:] if "list-type" in each]
    assert task.run() == []  # the scan finds nothing more
    task.restart()
    assert task.run() == []


@pytest.mark.parametrize("envelope", ["SNS", "EventBridge"])
def test_a_notification_may_have_an_envelope(bucket: Bucket, envelope: str) -> None:
    task = bucket.task()
    bucket.write("in/a b+.txt", b"one\n")
    event: dict[str, Any] = {"Records": [{"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": bucket.name}}}]}
    event["Records"][0]["s3"]["object"] = {"key": "in/a+b%2B.txt"}
    message = {"Type": "Notification", "TopicArn": "arn:aws:sns:us-east-1:1:t", "Message": json.dumps(event)}
    if envelope == "EventBridge":
        detail = {"bucket": {"name": bucket.name}, "object": {"key": "in/a b+.txt"}}
        message = {"source": "aws.s3", "detail-type": "Object Created", "detail": detail}  # type: ignore[dict-item]
    bucket.send_text(json.dumps(message))
    bucket.eventually_has(task, ["one"])


def test_a_message_is_there_until_the_task_has_looked(bucket: Bucket) -> None:
    task = bucket.task()
    bucket.write("in/a.txt", b"one\n")
    bucket.send("in/a.txt")
    eventually(lambda: bucket.messages() == (0, 1), what="that the message is received")
    task.stop()
    eventually(lambda: bucket.messages() == (1, 0), what="that the message is visible again")
    other = bucket.task("in/none*")  # another task that receives it, so that it is deleted
    eventually(lambda: bucket.messages() == (0, 0), what="the end of the message")
    assert other.task.poll() is None


def test_a_task_that_is_stopped_while_it_waits_for_messages_keeps_none(bucket: Bucket) -> None:
    task = bucket.task()
    hints = task.task._hints
    assert hints is not None
    eventually(lambda: hints._client is not None, what="the first request")
    task.stop()
    bucket.send("in/a.txt")
    eventually(lambda: not hints._thread.is_alive(), what="the end of the thread")
    assert bucket.messages() == (1, 0)


def test_events_of_deletions_and_objects_that_are_gone_do_no_harm(bucket: Bucket) -> None:
    task = bucket.task()
    bucket.send_text(json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": bucket.name}))
    bucket.write("in/b.txt", b"one\n")
    bucket.send("in/b.txt", name="ObjectRemoved:Delete")
    bucket.send("in/gone.txt")
    bucket.send("in/b.txt")
    bucket.send("in/b.txt")  # twice
    bucket.eventually_has(task, ["one"])


def test_other_messages_stay_in_the_queue(bucket: Bucket, caplog: pytest.LogCaptureFixture) -> None:
    task = bucket.task()
    bucket.send_text("an order")
    bucket.write("in/a.txt", b"one\n")
    bucket.send("in/a.txt")

    def is_read() -> bool:
        task.take(task.task.poll() or [])
        return bool(task.records) and sum(bucket.messages()) == 1

    eventually(is_read, what="the object")
    assert "messages that are not S3's" in caplog.text


def test_each_task_gets_the_notifications_of_its_files(bucket: Bucket) -> None:
    share = [{"sluiceway.folder.task": str(task), "sluiceway.folder.tasks": "3"} for task in range(3)]
    tasks = [bucket.task(**each) for each in share]
    names = [f"in/{number}.txt" for number in range(30)]
    for name in names:
        bucket.write(name, name.encode())
        bucket.send(name)

    def are_read() -> bool:
        for task in tasks:
            task.take(task.task.poll() or [])
        return sum(len(task.records) for task in tasks) == len(names) and bucket.messages() == (0, 0)

    eventually(are_read, what="all objects, each by its task")
    for number, task in enumerate(tasks):
        mine = [name for name in names if is_of_task(str(bucket_of(f"s3://{bucket.name}/{name}")), number, 3)]
        assert mine
        assert sorted(record.value for record in task.records) == sorted(mine)


def test_a_message_for_a_task_that_is_away_is_not_asked_for_all_the_time(bucket: Bucket, server: S3Server) -> None:
    name = next(
        name
        for name in (f"in/{number}.txt" for number in range(100))
        if is_of_task(str(bucket_of(f"s3://{bucket.name}/{name}")), 1, 2)
    )
    task = bucket.task(**{"sluiceway.folder.task": "0", "sluiceway.folder.tasks": "2"})
    bucket.write(name, b"one\n")
    bucket.send(name)
    eventually(lambda: task.task._hints is not None and task.task._hints._pause >= 0.4, what="longer pauses")
    assert task.task.poll() is None
    owner = bucket.task(**{"sluiceway.folder.task": "1", "sluiceway.folder.tasks": "2", "listing.order": "any"})
    bucket.eventually_has(owner, ["one"])


def test_a_marker_is_a_notification_of_its_object(bucket: Bucket) -> None:
    task = bucket.task("in/*.txt", **{"complete.when": "marker"})
    bucket.write("in/a.txt", b"one\n")
    bucket.send("in/a.txt")
    eventually(lambda: task.task.poll() is None and bucket.messages() == (0, 0), what="the first look")
    assert task.records == []
    bucket.write("in/a.txt.done", b"")
    bucket.send("in/a.txt.done")
    bucket.eventually_has(task, ["one"])


def test_a_notification_finds_what_a_listing_of_new_keys_would_not(bucket: Bucket) -> None:
    bucket.write("in/5.txt", b"five\n")
    task = bucket.task(**{"listing.order": "ascending"})
    bucket.eventually_has(task, ["five"])
    bucket.write("in/4.txt", b"four\n")
    bucket.send("in/4.txt")
    bucket.eventually_has(task, ["five", "four"])


def test_a_queue_that_is_missing_is_said_at_its_key_and_by_the_task(bucket: Bucket, caplog: pytest.LogCaptureFixture) -> None:
    config = bucket.config()
    assert not any(each.errors for each in FolderSourceConnector.validate(config).values())
    config["notifications.sqs.queue.url"] = f"{bucket.queue}-missing"
    found = FolderSourceConnector.validate(config)
    assert [name for name, each in found.items() if each.errors] == ["notifications.sqs.queue.url"]
    task = bucket.task(**{"notifications.sqs.queue.url": f"{bucket.queue}-missing"})
    bucket.write("in/a.txt", b"one\n")
    eventually(lambda: "found by scans only" in caplog.text, what="the warning")
    assert task.run() == ["one"]
