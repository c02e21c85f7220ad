"""Server-sent events: the framing, and nothing about what is framed."""

import msgspec

CONTENT_TYPE = "text/event-stream; charset=utf-8"

HEADERS = {
    "Cache-Control": "no-cache",
    # nginx would collect the stream before it passes it on.
    "X-Accel-Buffering": "no",
}

DONE = b"data: [DONE]\n\n"

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment: clients skip it, proxies see that the connection lives."""

KEEP_ALIVE_SECONDS = 10.0

_encoder = msgspec.json.Encoder()


def event(data: msgspec.Struct) -> bytes:
    """One event. JSON escapes line breaks, so one data line is enough."""
    return b"data: " + _encoder.encode(data) + b"\n\n"
