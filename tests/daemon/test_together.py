"""Twelve clients at once, each with its own prompt, get exactly what each gets alone: text and log-probabilities."""

import threading

import pytest

SUBJECTS = ["rivers", "stars", "bread", "clocks", "horses", "salt", "glass", "winter", "maps", "bees", "rope", "ink"]


def body(index):
    words = " and ".join(SUBJECTS[: index + 1])
    return {
        "messages": [{"role": "user", "content": f"Say something about {words}. " * (1 + 3 * (index % 4))}],
        "max_tokens": 24,
        "temperature": 0 if index % 2 else 0.9,
        "seed": index,
        "logprobs": True,
        "top_logprobs": 5,
    }


@pytest.mark.parametrize("stagger", [False, True])
def test_twelve_at_once_get_what_each_gets_alone(daemon, stagger):
    with daemon.client() as client:
        alone = [client.post("/v1/chat/completions", json=body(n)).json()["choices"] for n in range(12)]
    together = [None] * 12
    begin = threading.Barrier(12)

    def ask(n):
        with daemon.client() as client:
            begin.wait()
            if stagger:
                # Each joins while those before it decode.
                threading.Event().wait(0.03 * n)
            together[n] = client.post("/v1/chat/completions", json=body(n)).json()["choices"]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone
    assert all(len(choice[0]["logprobs"]["content"]) > 3 for choice in alone)
    daemon.assert_idle()
