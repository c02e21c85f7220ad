"""What clients and `pumactl` are told about prompts that begin alike."""

from tests.daemon.daemons import RunningDaemon, pumactl
from tests.daemon.streams import chunks_of

STORY = "Tell me how the lighthouse keeper's daughter found the seven grey stones. " * 4


def cached_tokens(usage):
    return usage["prompt_tokens_details"]["cached_tokens"]


def test_usage_says_what_was_cached(chat, complete, daemon):
    before = daemon.status()
    first = chat(STORY, max_tokens=2).json()["usage"]
    again = chat(STORY, max_tokens=2).json()["usage"]
    assert cached_tokens(first) < 32
    assert cached_tokens(again) == (again["prompt_tokens"] - 1) // 16 * 16 > 48
    usage = {"stream": True, "stream_options": {"include_usage": True}}
    assert chunks_of(chat(STORY, max_tokens=2, **usage))[-2]["usage"] == again
    two = complete([STORY, STORY], max_tokens=2).json()["usage"]
    twice = chunks_of(complete([STORY, STORY], max_tokens=2, **usage))[-2]["usage"]
    assert cached_tokens(twice) == (twice["prompt_tokens"] // 2 - 1) // 16 * 16 * 2
    after = daemon.status()
    told = cached_tokens(first) + 2 * cached_tokens(again) + cached_tokens(two) + cached_tokens(twice)
    assert after.cached_tokens == before.cached_tokens + told
    assert after.blocks_cached > 0
    assert after.blocks_used == 0


def test_answers_are_the_same_as_without(complete):
    with RunningDaemon("--prefix-caching", "off") as daemon, daemon.client() as client:
        shown = pumactl("status", control=daemon.control).stdout
        assert "cached    0 blocks more, 0 % of prompt tokens were found cached" in shown
        body = {"prompt": STORY, "max_tokens": 12, "logprobs": 5, "seed": 7, "temperature": 0.9}
        bare = [client.post("/v1/completions", json=body).json() for _ in range(2)]
        assert [cached_tokens(one["usage"]) for one in bare] == [0, 0]
        assert daemon.status().blocks_cached == 0
        assert daemon.end() == 0
    for _ in range(2):
        found = complete(**body).json()
        assert found["choices"] == bare[0]["choices"] == bare[1]["choices"]
    assert cached_tokens(found["usage"]) >= 48
