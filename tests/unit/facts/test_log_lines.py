"""Lines of logs without what journalctl, Docker and the engine put before their message."""

import pytest

from boxwright.facts.parsers.log_lines import parse


@pytest.mark.parametrize(
    ("line", "process", "level", "text"),
    [
        ("(Worker_TP0 pid=9) INFO 11-29 10:00:00 [x.py:1] text", "Worker_TP0 pid=9", "INFO", "text"),
        ("INFO 11-29 10:00:00.123 [x.py:1] text", "", "INFO", "text"),
        ("(APIServer pid=1) INFO:     Started server process [1]", "APIServer pid=1", "INFO",
         "Started server process [1]"),
        ("(APIServer pid=3) (EngineCore_0 pid=29) (VllmWorker TP0 pid=302) WARNING 09-07 11:25:27 text",
         "VllmWorker TP0 pid=302", "WARNING", "text"),
        ("[rank0]:   File \"x.py\", line 1", "rank0", None, "  File \"x.py\", line 1"),
        ("[rank1]:[E731 01:24:58.516 ProcessGroupNCCL.cpp:2119] text", "rank1", "ERROR",
         "[E731 01:24:58.516 ProcessGroupNCCL.cpp:2119] text"),
        ("(see [rank0]: above)", "", None, "(see [rank0]: above)"),
        ("[2026-11-29 12:00:00 TP0] The server is fired up", "", None, "The server is fired up"),
        ("(APIServer pid=1)   File \"x.py\", line 1", "APIServer pid=1", None, "  File \"x.py\", line 1"),
        ("plain", "", None, "plain"),
        ("", "", None, ""),
        ("Nov 29 10:00:00 box1 boxwright-qwen[44]: (EngineCore pid=7) ERROR 03-18 13:41:09 [core.py:8] text",
         "EngineCore pid=7", "ERROR", "text"),
        ("2026-11-29T10:00:00.123456789Z (Worker_TP0 pid=9) INFO 11-29 10:00:00 [x.py:1] text",
         "Worker_TP0 pid=9", "INFO", "text"),
        # A level of four letters is no time zone.
        ("2026-11-29 10:00:00 INFO text", "", "INFO", "text"),
        ("2026-11-29T10:00:00,123 WARN text", "", "WARNING", "text"),
        ("2026-11-29 10:00:00 UTC text", "", None, "text"),
        ("2026-11-29 10:00:00 CEST INFO text", "", "INFO", "text"),
        ("2026-11-29 10:00:00 INFO: text", "", "INFO", "text"),
        ("vllm-1  | (EngineCore pid=7) text", "EngineCore pid=7", None, "text"),
        ("\x1b[1;36m(EngineCore pid=7)\x1b[0;0m ERROR 11-29 10:00:00 [x.py:1] text", "EngineCore pid=7",
         "ERROR", "text"),
        ("[   84.738325] NVRM: text", "", None, "NVRM: text"),
        ("1764410400.123456 box1 kernel: NVRM: text", "", None, "NVRM: text"),
        ("old\rnew\r\n", "", None, "new"),
    ],
)  # fmt: skip
def test_prefixes(line, process, level, text):
    found = parse(line)
    assert (found.process, found.level, found.text) == (process, level, text)


def test_the_journals_seconds_are_kept():
    assert parse("1764410400.250000 box1 kernel: NVRM: text").time == 1764410400.25
    assert parse("Nov 29 10:00:00 box1 kernel: NVRM: text").time is None
