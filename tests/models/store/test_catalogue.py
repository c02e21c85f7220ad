import pytest

from puma.models.store.catalogue import CATALOGUE, NAME, find
from puma.models.store.errors import StoreError


def test_the_default_model(home):
    entry = find("smollm2:135m")
    assert entry.path == home / "models" / "smollm2-135m.gguf"
    assert not entry.is_here


def test_entries_can_be_told_apart(home):
    for values in ([entry.name for entry in CATALOGUE], [entry.path for entry in CATALOGUE]):
        assert len(set(values)) == len(values)
    for entry in CATALOGUE:
        assert NAME.fullmatch(entry.name)
        assert entry.path.parent == home / "models"


@pytest.mark.parametrize("name", ["smollm2:135", "smollm2", "smolm2:135m"])
def test_a_near_miss_is_told_the_nearest(name):
    with pytest.raises(StoreError, match=r"did you mean smollm2:135m\?"):
        find(name)


def test_a_name_far_from_any_is_told_all():
    with pytest.raises(StoreError, match="no model is called 'xyzzy'; known models: smollm2:135m"):
        find("xyzzy")


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../smollm2:135m",
        "smollm2/../../etc",
        "smollm2:../135m",
        "/etc/passwd",
        "c:\\models",
        "a\\b",
        "smollm2%2f135m",
        "smollm2:135m\0",
        "smollm2:135m\n",
        "-rf",
        "--help",
        "smollm2:-135m",
        "a" * 5000,
        "a:b:c",
        "SmolLM2:135M",
        "é",
        " smollm2:135m",
    ],
)
def test_names_with_tricks(name):
    with pytest.raises(StoreError) as caught:
        find(name)
    assert "is no model name" in str(caught.value)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)
