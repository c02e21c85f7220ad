"""The house rules that can be checked: imports run one way, every folder is packaged, files stay small."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("config", "kernels", "models", "actors", "daemon")
"""Lowest first; a package imports from those below it and from itself."""

MOST_LINES = 260
"""One idea to a file; a longer one needs a reason."""

LONGER = {
    # The whole vocabulary between the actors, in the order in which a request meets it.
    "actors/messages.py",
}


DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def sources():
    return [path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))]


def imports(path):
    """Names of the modules that a file imports anywhere."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_run_one_way(layer):
    allowed = {"config", layer} | set(LAYERS[: LAYERS.index(layer)])
    for path in sorted((ROOT / layer).rglob("*.py")):
        for name in imports(path):
            assert not name.startswith("."), f"{path}: relative import"
            assert name.split(".")[0] not in LAYERS, f"{path} imports {name} without puma"
            if name.startswith("puma."):
                assert name.split(".")[1] in allowed, f"{path} imports {name}"


def test_every_folder_is_packaged():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {"puma." + ".".join(path.parent.relative_to(ROOT).parts) for path in sources()}
    assert sorted(listed) == sorted(found)
    for package in listed:
        assert (ROOT.joinpath(*package.split(".")[1:]) / "__init__.py").exists()


def test_files_are_small():
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines()) for path in sources()}
    long = {name: lines for name, lines in lengths.items() if lines > MOST_LINES and name not in LONGER}
    assert not long
    assert sorted(lengths.values())[len(lengths) // 2] < 100


def test_every_module_says_what_it_is():
    for path in sources():
        assert ast.get_docstring(ast.parse(path.read_text())), path


def documents():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.name)
def test_documents_name_files_and_functions_that_are_there(document):
    for path, name in re.findall(r"`((?:\w+/)+\w+\.py)(?:: ([\w.]+))?`", document.read_text()):
        assert (ROOT / path).exists(), path
        tree = ast.parse((ROOT / path).read_text())
        for part in filter(None, name.split(".")):
            inside = {node.name: node for node in ast.walk(tree) if isinstance(node, DEFINITIONS)}
            assert part in inside, f"{path}: {name}"
            tree = inside[part]


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document):
    for target in re.findall(r"\]\((?!http|#)([^)#]+)", document.read_text()):
        assert (document.parent / target).exists(), target
