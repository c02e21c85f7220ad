"""The command line."""

import os
import subprocess
import sys

import pytest

from puma.models.store.catalogue import find
from tests.daemon.daemons import MODEL, START_SECONDS, command, puma

QUESTION = "Name the capital of France."


def test_version():
    shown = puma("version")
    assert shown.returncode == 0
    assert shown.stdout == "puma 0.1.0\n"


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"], ["run", "--help"], ["pull", "--help"]])
def test_help(arguments):
    shown = puma(*arguments)
    assert shown.returncode == 0
    assert "usage: puma" in shown.stdout


def test_serve_and_run_have_the_same_engine_flags():
    texts = [puma(name, "--help").stdout.partition("\nengine:")[2].partition("\n\n")[0] for name in ("serve", "run")]
    assert texts[0]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("module", ["puma.daemon.control.pumactl", "puma.daemon.main"])
def test_what_is_not_needed_is_not_imported(module):
    heavy = "numba", "numpy", "quart", "trio", "rich", "hypercorn", "jinja2", "tokenizers"
    code = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


def test_everything_wrong_is_told_at_once():
    shown = puma(
        "serve",
        "--tokens-per-block=0",
        "--memory-pool-bytes=2g",
        "--port=70000",
        "--log-level=loud",
        "--max-bach-size=4",
    )
    assert shown.returncode == 2
    lines = shown.stderr.splitlines()
    assert len(lines) == 5
    for words in (
        "--tokens-per-block = '0' (command line): must be 16 to 4096 tokens, a multiple of 16",
        "--memory-pool-bytes = '2g' (command line): expected a size",
        "--port = '70000' (command line): must be 0 to 65535",
        "--log-level = 'loud' (command line): expected debug, error, info or warning",
        "did you mean --max-batch-size?",
    ):
        assert any(words in line for line in lines), shown.stderr


def test_no_command():
    assert puma().returncode == 2


@pytest.mark.parametrize("name", ["serve", "run"])
def test_pool_too_small_for_the_model(name):
    shown = puma(name, MODEL, "--memory-pool-bytes", "1kB", input="hello")
    assert shown.returncode == 2
    assert "--memory-pool-bytes = '1kB' (command line): must be 368.64kB to " in shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize(
    "flags", [["--host", "no such host"], ["--host", "203.0.113.1"], ["--control-socket", "/dev/null/x"]]
)
def test_places_that_cannot_be_had(flags):
    shown = puma("serve", MODEL, "--port", "0", *flags)
    assert shown.returncode == 2
    assert "Traceback" not in shown.stderr
    assert "weights" not in shown.stderr


def test_model_that_is_not_there(tmp_path):
    environment = os.environ | {"PUMA_HOME": str(tmp_path)}
    shown = puma("serve", env=environment)
    assert shown.returncode == 4
    assert "puma pull smollm2:135m" in shown.stderr
    for name in (str(tmp_path / "none.gguf"), "no-such-model", "../../etc/passwd", "", "-", "a\nb"):
        shown = puma("serve", "--port", "0", "--", name, env=environment)
        assert shown.returncode == 4, shown.stderr
        assert "Traceback" not in shown.stderr


def test_file_that_is_no_model(tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 100)
    shown = puma("serve", str(path), "--port", "0", "--control-socket", str(tmp_path / "s"))
    assert shown.returncode == 4
    assert "x.gguf" in shown.stderr
    assert "Traceback" not in shown.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.gguf"]


def test_run_answers_a_prompt():
    shown = puma("run", MODEL, QUESTION, "--temperature", "0")
    assert shown.returncode == 0, shown.stderr
    assert "Paris" in shown.stdout
    assert shown.stdout.endswith("\n")


def test_run_with_a_cache_in_float32():
    shown = puma("run", MODEL, QUESTION, "--temperature", "0", "--kv-dtype", "f32")
    assert shown.returncode == 0, shown.stderr
    assert "Paris" in shown.stdout
    refused = puma("run", MODEL, QUESTION, "--kv-dtype", "f8")
    assert refused.returncode == 2
    assert "--kv-dtype = 'f8' (command line): expected f16 or f32" in refused.stderr


def test_run_answers_standard_input():
    shown = puma("run", MODEL, "--temperature", "0", "--default-max-tokens", "3", input=QUESTION)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout
    assert "--default-max-tokens" in shown.stderr
    again = puma("run", MODEL, "-", "--temperature", "0", "--default-max-tokens", "3", input=QUESTION)
    assert again.stdout == shown.stdout
    assert puma("run", MODEL, input="  \n").returncode == 2


def test_run_with_a_seed():
    lines = [puma("run", MODEL, QUESTION, "--seed", "5", "--temperature", "1.5").stdout for _ in range(2)]
    assert lines[0] == lines[1]
    assert puma("run", MODEL, QUESTION, "--temperature", "3").returncode == 2


def test_run_refuses_a_prompt_that_is_too_long():
    shown = puma("run", MODEL, "word " * 10_000)
    assert shown.returncode == 1
    assert "context" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_reader_of_the_output_has_gone():
    process = subprocess.Popen(
        command("run", MODEL, "Write a long story.", "--default-max-tokens", "300"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.read(1)
    process.stdout.close()
    errors = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(START_SECONDS) == 141
    assert errors == "puma: loading weights\n" or "Traceback" not in errors
    assert "BrokenPipe" not in errors


def test_models_that_are_here_and_that_could_be(tmp_path, smollm2_path):
    environment = os.environ | {"PUMA_HOME": str(tmp_path)}
    assert puma("ls", env=environment).stdout.split() == [
        "smollm2:135m",
        "93.8",
        "MiB",
        *["puma", "pull", "smollm2:135m"],
    ]
    entry = find("smollm2:135m")
    (tmp_path / "models").mkdir()
    place = tmp_path / "models" / entry.path.name
    place.write_bytes(b"GGUF")
    assert puma("ls", env=environment).stdout.split()[3:] == ["incomplete:", "puma", "pull", "smollm2:135m"]
    place.unlink()
    place.symlink_to(smollm2_path)
    assert puma("ls", env=environment).stdout.split() == ["smollm2:135m", "93.8", "MiB", "here"]
    pulled = puma("pull", env=environment)
    assert (pulled.returncode, pulled.stdout) == (0, "smollm2:135m is here already\n")


@pytest.mark.parametrize("name", ["smollm2", "../x", "", "x" * 5000, "a\nb"])
def test_pulling_what_is_not_known(name):
    shown = puma("pull", "--", name)
    assert shown.returncode == 4
    assert "smollm2:135m" in shown.stderr
    assert "Traceback" not in shown.stderr
    assert len(shown.stderr) < 1000


@pytest.mark.parametrize("arguments", [["version", "--x"], ["ls", "x"], ["pull", "smollm2:135m", "--force"]])
def test_arguments_that_nothing_takes(arguments):
    shown = puma(*arguments)
    assert shown.returncode == 2
    assert "not understood" in shown.stderr
