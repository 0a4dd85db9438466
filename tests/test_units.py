"""Numbers as text: three significant digits, the unit that fits, one separator."""

from __future__ import annotations

import math

import pytest

from maiprof_nb import units

THIN = "\N{NARROW NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (1, "1.00 ns"),
        (999, "999 ns"),
        (999.7, "1.00 µs"),
        (1_000, "1.00 µs"),
        (1_234_567, "1.23 ms"),
        (999_999, "1.00 ms"),
        (999_999_999, "1.00 s"),
        (59_940_000_000, "59.9 s"),
        (59_990_000_000, "1 min 00 s"),
        (125_000_000_000, "2 min 05 s"),
        (3_599_600_000_000, "1 h 00 min"),
        (7_380_000_000_000, "2 h 03 min"),
        (-1_500, "-1.50 µs"),
        (-125_000_000_000, "-2 min 05 s"),
        (math.nan, "n/a"),
    ],
)
def test_duration(ns, text):
    assert units.duration(ns) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1023, f"1{THIN}023 B"),
        (1024, "1.00 KiB"),
        (1024**2 - 1, "1.00 MiB"),
        (262_144_000, "250 MiB"),
        (-2048, "-2.00 KiB"),
        (5000 * 1024**5, f"5{THIN}000 PiB"),
        (math.nan, "n/a"),
    ],
)
def test_size(size, text):
    assert units.size(size) == text


def test_durations_grow_with_their_numbers():
    """No value is written as more than a thousand of its unit."""
    for exponent in range(1, 36):
        value = 2.0**exponent - 0.01
        number = units.duration(value).split()[0]
        assert float(number.replace(THIN, "")) < 1000, value


def test_percent():
    assert [units.percent(share) for share in (0, 0.4713, 1, math.nan)] == [
        "0.0 %",
        "47.1 %",
        "100.0 %",
        "n/a",
    ]


def test_count_rounds_and_separates_thousands():
    assert [units.count(number) for number in (0, 303.9, 1234567, -4321)] == [
        "0",
        "304",
        f"1{THIN}234{THIN}567",
        f"-4{THIN}321",
    ]
