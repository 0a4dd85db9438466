from __future__ import annotations

import builtins
import contextlib
import io

import numpy as np
import pandas as pd
import pytest

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import registry, smi_query

SECOND_NS = 10**9


def _bytes(frame: pd.DataFrame) -> bytes:
    made = io.BytesIO()
    frame.to_parquet(made)
    return made.getvalue()


def _read(frame: pd.DataFrame):
    return registry.read(_bytes(frame), "x")


def test_counters_come_back_as_they_were():
    head = "timestamp, index, power.draw [W]\n"
    text = f"{head}2026/01/03 15:36:53, 0, 5 W\n2026/01/03 15:36:55, 1, 6 W\n".encode()
    before = smi_query.read(text, "x").table("counters")
    recording = _read(before)
    pd.testing.assert_frame_equal(recording.table("counters"), before)
    assert recording.clock.epoch_ns is None
    assert "does not state" in recording.clock.origin


def test_epoch_ns_and_optional_columns():
    frame = pd.DataFrame(
        {"ts_ns": [1_767_451_013_250_000_000, 1_767_451_014_250_000_000, 1_767_451_015_250_000_000],
         "counter": ["a", "a", "b"], "value": [1.0, 2.0, np.nan]}
    )  # fmt: skip
    recording = _read(frame)
    table = recording.table("counters")
    assert table["ts_ns"].tolist() == [0, SECOND_NS]
    assert table["device"].isna().all()
    assert recording.clock.epoch_ns == 1_767_451_013_250_000_000
    assert {note.code: note.count for note in recording.notes} == {"missing-values": 1}


@pytest.mark.parametrize(
    ("zone", "uncertainty_ns"), [(None, 14 * 3600 * SECOND_NS), ("UTC", SECOND_NS)]
)
def test_a_wide_table_with_its_times_as_index(zone, uncertainty_ns):
    times = pd.date_range("2026-01-03 15:36:53", periods=2, freq="s", tz=zone, name="when")
    frame = pd.DataFrame({"cpu_percent": [5, 6], "gpu0_power_w": [1.5, np.nan], "host": "a"}, times)
    table = _read(frame).table("counters")
    assert table["counter"].tolist() == [
        "cpu_percent", "cpu.utilization", "gpu0_power_w", "cpu_percent", "cpu.utilization",
    ]  # fmt: skip
    assert table["value"].tolist() == [5, 5, 1.5, 6, 6]
    assert table["ts_ns"].tolist() == [0, 0, 0, SECOND_NS, SECOND_NS]
    clock = _read(frame).clock
    assert clock.epoch_ns == 1_767_454_613 * SECOND_NS  # 2026-01-03 15:36:53 as UTC
    assert clock.uncertainty_ns == uncertainty_ns


def test_a_column_names_the_gpu_of_each_row():
    frame = pd.DataFrame({"timestamp": [1.5, 2.5], "gpu": [0, 1], "power_w": [10, 20]})
    table = _read(frame).table("counters")
    assert table["device"].tolist() == ["0", "1"]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1.5]}),
        pd.DataFrame({"timestamp": [1, 2], "label": [3, 4]}),
        pd.DataFrame({"ts_ns": [1], "dur_ns": [2], "share": [0.5]}),
        pd.DataFrame({"timestamp": ["x"], "power_w": [[1, 2]]}),
    ],
)
def test_other_tables_are_refused(frame):
    with pytest.raises(LoadError, match="without a column of times and numbers"):
        _read(frame)


def test_odd_cells_are_missing():
    frame = pd.DataFrame({"ts_ns": [1, 2], "counter": ["a", None], "value": [[1], [2]]})
    recording = _read(frame)
    assert recording.table("counters").empty


def test_damaged_files_are_refused():
    whole = _bytes(pd.DataFrame({"timestamp": [1.5], "power_w": [10]}))
    rng = np.random.default_rng(0)
    for data in (b"PAR1", whole[:-9], whole[:200], b"PAR1" + b"\0" * 100 + b"PAR1"):
        with pytest.raises(LoadError, match="cannot be read"):
            registry.read(data, "x")
    for _ in range(60):
        data = np.frombuffer(whole, dtype=np.uint8).copy()
        places = rng.integers(4, len(data), size=4)
        data[places] = rng.integers(0, 256, size=4)
        with contextlib.suppress(LoadError):
            registry.read(data.tobytes(), "x")


def test_a_pyarrow_without_parquet_is_told(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "pyarrow" and "parquet" in (args[2] or ()):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(LoadError, match="built without"):
        registry.read(b"PAR1....", "x")
