"""The configuration in force, shown, saved, and described for editors and in the documents."""

import re
import tomllib
from pathlib import Path

import pytest

from puma.config.configuration import configure, resolve
from puma.config.document import renewed
from puma.config.schema import json_schema
from puma.config.sections import OPTIONS, SECTIONS
from puma.config.setting import ENVIRONMENT, Setting
from puma.config.show import rows_of, show_text, to_toml

BY_PATH = {option.path: option for option in OPTIONS}
DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"

SET = {
    "engine.memory_pool_bytes": "1500",
    "engine.threads": "2",
    "engine.default_max_tokens": "context",
    "engine.block_size_bytes": "1kB",
    "server.served_model_name": 'a "name" \\ of é',
    "server.api_key": "hush",
    "log.level": "debug",
}


@pytest.fixture
def config():
    return resolve([Setting(BY_PATH[path], text, BY_PATH[path].variable, ENVIRONMENT) for path, text in SET.items()])


def test_every_value_with_its_origin(config):
    rows = [re.split(r" {2,}", line) for line in show_text(rows_of(config)).splitlines()]
    shown = {path: (value, origin) for path, value, origin in rows}
    assert set(shown) == set(BY_PATH)
    assert shown["engine.threads"] == ("2", "PUMA_THREADS, environment")
    assert shown["engine.context_length"] == ("auto", "default")
    assert shown["server.max_body_bytes"] == ("16MiB", "default")
    assert shown["server.api_key"] == ("********", "PUMA_API_KEY, environment")


def test_a_saved_file_gives_the_same_configuration(config, tmp_path, monkeypatch):
    monkeypatch.setenv("PUMA_HOME", str(tmp_path))
    text = to_toml(config)
    assert "hush" not in text
    (tmp_path / "puma.toml").write_text(text)
    again = configure(environment={"PUMA_API_KEY": "hush"})
    assert (again.engine, again.server, again.log) == (config.engine, config.server, config.log)


def test_a_saved_file_names_every_key():
    document = tomllib.loads(to_toml(resolve([])))
    named = {f"{section}.{key}" for section, keys in document.items() for key in keys}
    assert named == {option.path for option in OPTIONS if not option.secret}


def test_the_schema_knows_every_key_and_nothing_else():
    schema = json_schema()
    assert set(schema["properties"]) == set(SECTIONS)
    assert not schema["additionalProperties"]
    for section, content in schema["properties"].items():
        assert not content["additionalProperties"]
        assert {f"{section}.{key}" for key in content["properties"]} == {
            option.path for option in OPTIONS if option.section == section
        }
    tokens = schema["properties"]["engine"]["properties"]["tokens_per_block"]["anyOf"]
    assert tokens == [{"type": "integer", "minimum": 16, "maximum": 4096, "multipleOf": 16}, {"enum": ["auto"]}]


def test_the_table_of_the_documentation_is_current():
    document = DOCUMENT.read_text()
    assert renewed(document) == document, "run `make docs`"
