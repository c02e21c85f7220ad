"""Reading server-sent events in tests."""

import json


def chunks_of(response):
    """The stream's events as objects, with "[DONE]" as it is; comments are dropped."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.text.endswith("\n\n")
    events = [event for event in response.text.split("\n\n") if event and not event.startswith(":")]
    assert all(event.startswith("data: ") and "\n" not in event for event in events)
    return [event[6:] if event == "data: [DONE]" else json.loads(event[6:]) for event in events]


def content_of(chunks):
    """The text of a chat stream, joined."""
    return "".join(
        choice["delta"].get("content", "") for chunk in chunks if chunk != "[DONE]" for choice in chunk["choices"]
    )


def text_of(chunks, index=0):
    """The text of one choice of a completion stream, joined."""
    return "".join(
        choice["text"]
        for chunk in chunks
        if chunk != "[DONE]"
        for choice in chunk["choices"]
        if choice["index"] == index
    )
