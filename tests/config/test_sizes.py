"""Sizes as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puma.config.sizes import UNITS, format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("104857600", 104857600),
        ("512B", 512),
        ("1kB", 1000),
        ("1KiB", 1024),
        ("2GB", 2 * 10**9),
        ("2GiB", 2 * 2**30),
        ("2 GiB", 2 * 2**30),
        ("1.5GB", 1_500_000_000),
        ("1.5GiB", 1536 * 2**20),
        ("2048MiB", 2 * 2**30),
        ("0.1KiB", 102),
        (" 3TB ", 3 * 10**12),
    ],
)
def test_forms(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    [
        *("", "2g", "2G", "1K", "1k", "1KB", "1.5", "1.5B", "-1", "+1", "1e9", "1_000"),
        *("GiB", "1 GiB x", "1  GiB", "1gib", "nan", "٣GiB", "1,5GB", "0x10", "9" * 40),
    ],
)
def test_anything_else_shows_the_forms(text):
    with pytest.raises(ValueError, match=r"200MiB.*1\.5GB"):
        parse_size(text)


@given(st.integers(0, 10**15), st.sampled_from([unit for unit in UNITS if unit]))
def test_whole_sizes_are_exact(count, unit):
    assert parse_size(f"{count}{unit}") == count * UNITS[unit]


def test_shown():
    assert [format_size(size) for size in (0, 1023, 1024, 1536, 100 * 2**20, 2**40)] == [
        "0 B",
        "1023 B",
        "1 KiB",
        "1.5 KiB",
        "100 MiB",
        "1 TiB",
    ]
