"""A configuration meets a model: what does not fit is told before anything is bound or loaded, with what would."""

import re
import socket

import pytest

from tests.daemon.daemons import MODEL, RunningDaemon, puma


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (
            ["--tokens-per-block", "0"],
            "--tokens-per-block = '0' (command line): must be 16 to 4096 tokens, a multiple of 16, or \"auto\"",
        ),
        (["--max-batch-size", "0"], "--max-batch-size = '0' (command line): must be 1 to 1024 sequences"),
        (["--context-length", "0"], "--context-length = '0' (command line): must be 1 to 16777216 tokens, or \"auto\""),
        (
            ["--block-size-bytes", "512"],
            "--block-size-bytes = '512' (command line): must be 368640 to 104857600: one token of this model takes "
            "23,040 bytes (22.5 KiB), a block of 16 tokens 368,640 bytes (360 KiB)",
        ),
        (
            ["--block-size-bytes", "512KiB", "--tokens-per-block", "32"],
            "--block-size-bytes = '512KiB' (command line): must be 720KiB to 102400KiB: one token of this model takes "
            "23,040 bytes (22.5 KiB), a block of 32 tokens 737,280 bytes (720 KiB)",
        ),
        (
            ["--context-length", "8193"],
            "--context-length = '8193' (command line): must be 1 to 8192: the model's own context",
        ),
        (
            ["--context-length", "8192"],
            "--context-length = '8192' (command line): must be 1 to 4544: the KV cache holds no more; "
            "memory_pool_bytes = 188743680 would hold 8,192 tokens",
        ),
    ],
)
@pytest.mark.parametrize("command", ["serve", "run"])
def test_messages_to_act_on(command, flags, expected):
    shown = puma(command, MODEL, *flags, input="hi")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert [line for line in shown.stderr.splitlines() if not line.startswith("puma: loading")] == [f"puma: {expected}"]


def test_the_bounds_that_a_message_names_do_work():
    shown = puma("run", MODEL, "hi", "--memory-pool-bytes", "1kB")
    low = re.search(r"must be (\S+) to (\S+): one block", shown.stderr)[1]
    assert puma("run", MODEL, "hi", "--memory-pool-bytes", low, "--default-max-tokens", "1").returncode == 1
    assert puma("run", MODEL, "hi", "--memory-pool-bytes", "3MiB", "--default-max-tokens", "1").returncode == 0


@pytest.mark.parametrize("name", ["--memory-pool-bytes=1kB", "--threads=0", "--config=/no/such/file"])
def test_nothing_is_bound(name, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    control = tmp_path / "control" / "s"
    shown = puma("serve", MODEL, "--port", str(port), "--control-socket", str(control), name)
    assert shown.returncode == 2
    assert not control.exists()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))


def test_sizes_that_work_but_not_as_one_may_think_are_warned_of():
    with RunningDaemon("--memory-pool-bytes", "3MiB", "--max-batch-size", "16") as daemon:
        assert "the context is 8,192 tokens, the KV cache holds 128: longer requests will be refused" in daemon.log()
        assert "max_batch_size is 16, the KV cache has 8 blocks" in daemon.log()
        with daemon.client() as client:
            refused = client.post("/v1/completions", json={"prompt": [1] * 128, "max_tokens": 1})
            assert refused.status_code == 400
            assert "memory_pool_bytes = 3317760 would hold it" in refused.json()["error"]["message"]
            answered = client.post("/v1/completions", json={"prompt": [1] * 120, "max_tokens": 100})
            assert answered.json()["usage"]["total_tokens"] == 128
