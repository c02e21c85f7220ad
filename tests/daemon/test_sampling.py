"""What the sampling fields do."""

import pytest


def text(response):
    assert response.status_code == 200, response.text
    return response.json()["choices"][0]["message"]["content"]


def test_tiny_temperatures_are_greedy(chat):
    greedy = text(chat(temperature=0))
    assert [text(chat(temperature=value, seed=3)) for value in (1e-4, 1e-5, 1e-30)] == [greedy] * 3


def test_greedy_answers_are_the_same_every_time_and_whatever_the_seed(chat):
    assert len({text(chat(max_tokens=16, seed=seed)) for seed in (None, 1, 2, 1, 2, 3)}) == 1


def test_a_seed_fixes_the_answer(chat):
    answers = [text(chat(temperature=1.5, seed=seed, max_tokens=16)) for seed in (7, 7, 8)]
    assert answers[0] == answers[1] != answers[2]


def test_no_seed_means_another_answer(chat):
    for seed in (None, -1):
        assert len({text(chat(temperature=1.9, max_tokens=24, seed=seed)) for _ in range(4)}) > 1


def test_top_k_off(chat):
    for seed in range(3):
        off = text(chat(temperature=1, seed=seed))
        for top_k in (0, -1, 49152, 49153, 2**31, 2**62, None):
            assert text(chat(temperature=1, seed=seed, top_k=top_k)) == off


def test_one_candidate_is_greedy(chat):
    greedy = text(chat())
    assert text(chat(temperature=2, top_k=1)) == greedy
    assert text(chat(temperature=2, top_p=0)) == greedy
    assert text(chat(temperature=1, min_p=1)) == greedy


@pytest.mark.parametrize("seed", [0, -1, 2**31, 2**63 - 1, -(2**63), None])
def test_seeds_in_range(chat, seed):
    text(chat(temperature=1, seed=seed))


@pytest.mark.parametrize("seed", [2**63, 2**64, -(2**63) - 1, 1.5, 1.0, "7", True])
def test_seeds_out_of_range(chat, seed):
    response = chat(seed=seed)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "seed"
