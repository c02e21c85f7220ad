"""Sizes as people write them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puma.config.sizes import UNITS, exact_size, format_size, parse_share, parse_size, size_like


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


def test_shares():
    assert parse_share("25%") == Decimal("0.25")
    assert parse_share(" 12.5 % ") == Decimal("0.125")
    assert parse_share("100%") == 1
    assert parse_share("25") is None
    for text in ("0%", "101%"):
        with pytest.raises(ValueError, match="more than 0% and at most 100%"):
            parse_share(text)


@given(st.integers(0, 2**50))
def test_an_exact_size_is_read_without_loss(size):
    assert parse_size(exact_size(size)) == size


@given(st.integers(1, 2**50), st.sampled_from([*UNITS]), st.booleans())
def test_a_proposed_size_is_in_the_same_unit_and_on_the_right_side(size, unit, up):
    proposed = size_like(size, f"1{unit}", up=up)
    assert proposed.lstrip("0123456789.") == unit
    read = parse_size(proposed)
    assert read >= size if up else read <= size
    assert abs(read - size) <= max(1, UNITS[unit] / 1000)


def test_a_proposed_share():
    assert size_like(250, "50%", up=False, whole=1000) == "25%"
    assert size_like(1, "50%", up=True, whole=3) == "33.334%"
