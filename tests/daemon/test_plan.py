"""`puma plan`, and that the running daemon agrees with it."""

import json
import re

import pytest

from puma.config.machine import available_bytes
from tests.daemon.daemons import MODEL, RunningDaemon, puma, pumactl

NUMBERS = {
    "token_bytes": 23_040,
    "block_bytes": 368_640,
    "tokens_per_block": 16,
    "blocks": 284,
    "tokens": 4_544,
    "pool_bytes": 104_693_760,
    "unused_bytes": 163_840,
    "padding_bytes": 0,
    "context_bytes": 188_743_680,
    "full_contexts": 0,
    "stored_bytes": 96_576_768,
    "served_context_length": 8_192,
}


def plan(*flags):
    shown = puma("plan", MODEL, "--json", *flags)
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


def test_where_the_memory_goes():
    shown = puma("plan", MODEL, "--memory-pool-bytes", "100MiB", "--length", "512")
    assert shown.returncode == 0, shown.stderr
    assert "KV token   23,040 bytes (22.5 KiB) in f16\n" in shown.stdout
    assert "KV block   368,640 bytes (360 KiB) for 16 tokens\n" in shown.stdout
    assert "KV context 188,743,680 bytes (180 MiB) for 8,192 tokens\n" in shown.stdout
    assert "pool       104,857,600 bytes (100 MiB): 284 blocks, 4,544 tokens\n" in shown.stdout
    counts = "8 sequences of 512 tokens, 4 sequences of 1,024 tokens, 1 sequence of 4,096 tokens, 0 sequences of 8,192"
    assert counts in shown.stdout
    assert "padding    none\n" in shown.stdout
    assert re.search(r"^\[.{60}\]$", shown.stdout, re.MULTILINE)
    assert "note: the context is 8,192 tokens, the KV cache holds 4,544" in shown.stdout


def test_the_numbers_for_programs():
    found = plan("--memory-pool-bytes", "100MiB")
    assert {key: found[key] for key in NUMBERS} == NUMBERS
    parts = found["weight_bytes"] + found["pool_bytes"] + found["scratch_bytes"] + found["process_bytes"]
    assert found["total_bytes"] == parts
    assert plan("--kv-dtype", "f32")["token_bytes"] == 46_080
    assert plan("--tokens-per-block", "32", "--block-size-bytes", "1MiB")["padding_bytes"] == 2**20 - 32 * 23_040
    assert plan("--max-step-tokens", "1024")["scratch_bytes"] > found["scratch_bytes"]


def test_the_running_daemon_agrees():
    expected = plan("--memory-pool-bytes", "100MiB")
    with RunningDaemon("--memory-pool-bytes", "100MiB") as daemon:
        with daemon.client() as client:
            for _ in range(3):
                client.post("/v1/completions", json={"prompt": "once " * 600, "max_tokens": 5}).raise_for_status()
        status = daemon.status()
        assert (status.blocks_total, status.tokens_per_block) == (expected["blocks"], expected["tokens_per_block"])
        answer = json.loads(pumactl("config", "--json", control=daemon.control).stdout)
        shown = pumactl("config", control=daemon.control).stdout
        assert "pool       104,857,600 bytes (100 MiB): 284 blocks, 4,544 tokens\n" in shown
        assert re.search(r"engine.memory_pool_bytes +100MiB +--memory-pool-bytes, command line\n", shown)
        assert answer["plan"]["memory"]["blocks"] == 284
        assert "pool       104,857,600 bytes (100 MiB): 284 blocks, 4,544 tokens\n" in daemon.log()
        with open(f"/proc/{daemon.process.pid}/status") as file:
            resident = 1024 * int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1])
    assert resident == pytest.approx(expected["total_bytes"], rel=0.15)


@pytest.mark.parametrize(
    ("flags", "wrong", "nearest"),
    [
        (
            ["--context-length", "8192"],
            "--context-length = '8192' (command line): must be 1 to 4544: the KV cache holds no more",
            "--memory-pool-bytes 180MiB --context-length 8192",
        ),
        (["--block-size-bytes", "512"], "must be 368640 to 104857600", "--block-size-bytes 360KiB"),
        (["--memory-pool-bytes", "1000TiB"], "of memory are available, and the model takes", "--memory-pool-bytes "),
        (["--memory-pool-bytes", "10kB"], "must be 368.64kB to ", "--memory-pool-bytes 360KiB"),
    ],
)
def test_what_does_not_fit_ends_with_what_does(flags, wrong, nearest):
    shown = puma("plan", MODEL, *flags)
    assert shown.returncode == 2
    assert wrong in shown.stderr
    assert "Traceback" not in shown.stderr
    proposed = shown.stdout.partition("These fit:\n")[2].splitlines()
    assert len(proposed) == 3
    assert proposed[0].startswith(f"  puma serve {MODEL} {nearest}")
    for line in proposed:
        assert puma("plan", *line.split()[2:]).returncode == 0, line


def test_a_share_of_the_memory_is_used_well():
    budget = available_bytes() // 2
    shown = puma("plan", MODEL, "--fit", str(budget))
    assert shown.returncode == 0, shown.stderr
    *_, line = shown.stdout.splitlines()
    assert line.startswith(f"puma serve {MODEL} --memory-pool-bytes ")
    found = plan(*line.split()[3:])
    assert 0.9 * budget < found["total_bytes"] <= budget
    shown = puma("plan", MODEL, "--fit", "1MiB")
    assert shown.returncode == 2
    assert "not enough" in shown.stderr


def test_what_is_wrong_with_the_command_itself():
    wrong = ["--fit", "2g", "--memory-pool-bytes", "1GiB", "--length", "0", "--threads", "0", "--port", "1"]
    shown = puma("plan", MODEL, *wrong)
    assert shown.returncode == 2
    assert len(shown.stderr.splitlines()) == 5
    assert puma("plan", "no-such-model").returncode == 4
