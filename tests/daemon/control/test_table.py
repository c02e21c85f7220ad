"""`pumactl status` for people."""

from puma.daemon.control.messages import SequenceLine, Status
from puma.daemon.control.table import duration, status_text


def test_duration():
    assert duration(0) == "0 s"
    assert duration(59.9) == "59 s"
    assert duration(60) == "1 min 0 s"
    assert duration(3 * 3600 + 5 * 60 + 7) == "3 h 5 min"
    assert duration(2 * 86400 + 3600) == "2 d 1 h"


def test_columns_are_aligned():
    status = Status(
        version="0.1.0",
        pid=7,
        state="serving",
        model="m",
        address="http://127.0.0.1:8000",
        uptime_seconds=1,
        requests=2,
        blocks_total=284,
        blocks_used=142,
        blocks_cached=71,
        tokens_per_block=16,
        context_length=8192,
        prompt_tokens=1234567,
        cached_tokens=308642,
        generated_tokens=1,
        steps=2,
        busy_seconds=0.5,
        sequences=(
            SequenceLine("chatcmpl-1", "decoding", 10, 5, 1),
            SequenceLine("chatcmpl-22", "waiting", 1000, 0, 0),
        ),
    )
    lines = status_text(status).splitlines()
    assert lines[2] == "blocks    142 of 284 in use (50 %), 16 tokens each"
    assert lines[3] == "cached    71 blocks more, 25 % of prompt tokens were found cached"
    assert "1,234,567 of prompts" in lines[5]
    assert lines[-3:] == [
        "request      state     prompt  generated  blocks",
        "chatcmpl-1   decoding      10          5       1",
        "chatcmpl-22  waiting     1000          0       0",
    ]
