"""What the queue's library logs of a database that is away is one line."""

import logging

from procrastinate.exceptions import ConnectorException

from headwater.pipeline.queue import _in_one_line


def record(error: Exception) -> logging.LogRecord:
    return logging.LogRecord(
        "procrastinate.utils", logging.ERROR, "", 0, "%s failed", ("it",), (type(error), error, None)
    )


def test_an_absent_database_is_told_without_a_traceback() -> None:
    error = ConnectorException("wrapped")
    error.__cause__ = OSError("connection refused\nmore of it")
    told = record(error)
    assert _in_one_line(told)
    assert (told.getMessage(), told.exc_info) == ("it failed: connection refused", None)


def test_job_that_another_worker_took_is_told_on_one_line() -> None:
    error = ConnectorException("wrapped")
    error.__cause__ = RuntimeError('Job was not found or not in "doing" or "todo" status\nCONTEXT: …')
    told = logging.LogRecord(
        "asyncio",
        logging.ERROR,
        "",
        0,
        "Task exception was never retrieved\nfuture: <Task …>",
        (),
        (type(error), error, None),
    )
    assert _in_one_line(told)
    assert told.getMessage() == (
        'Task exception was never retrieved: Job was not found or not in "doing" or "todo" status'
    )
    assert told.exc_info is None


def test_a_mistake_keeps_its_traceback() -> None:
    told = record(ValueError("a bug"))
    assert _in_one_line(told)
    assert told.exc_info is not None
