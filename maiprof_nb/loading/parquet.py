"""Parquet tables of metrics: rows of the table `counters`, or a column of times and quantities."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import _metric_times, _metrics, wide_csv
from maiprof_nb.loading import _quantities as named
from maiprof_nb.loading._metric_times import Stamps
from maiprof_nb.recording import Recording
from maiprof_nb.tables import SCHEMAS
from maiprof_nb.timebase import Clock

NAME = "parquet"

_MAGIC = b"PAR1"
_COUNTER_COLUMNS = frozenset({"counter", "value"})
_MAX_BYTES = 8 * 2**30  # of the table unpacked
_FIRST_EPOCH_NS = 10**17  # smaller ns are from the start of something


def sniff(data: bytes) -> bool:
    """True for a Parquet file, whatever it holds."""
    return data.startswith(_MAGIC)


def read(data: bytes, source: str) -> Recording:
    """Read the table, with pyarrow.

    A table with ``counter`` and ``value`` has a sample a row (``ts_ns`` or a column of times,
    and perhaps ``device`` and ``unit``); any other is read as `wide_csv` reads text.

    Raises
    ------
    LoadError
        If pyarrow cannot read Parquet, the file is damaged, or the table is no table of metrics.
    """
    frame = _frame(data, source)
    if frame.index.name is not None and frame.index.name not in frame.columns:
        frame = frame.reset_index()
    frame.columns = pd.Index(_metrics.unique([str(name) for name in frame.columns]))
    time = _time_column(frame)
    if time and set(frame.columns) >= _COUNTER_COLUMNS:
        return _of_counters(frame, time, source)
    if (
        time is None
        or "dur_ns" in frame
        or not any(_measures(frame[n]) for n in _others(frame, time))
    ):
        shown = ", ".join(list(frame.columns)[:4])
        raise LoadError(
            f"is a Parquet table without a column of times and numbers (it has {shown})",
            where=source,
            remedy="Give a table with a column timestamp and a column a quantity, such as "
            "cpu_percent or gpu0_power_w",
        )
    return _of_columns(frame, time, source)


def _frame(data: bytes, source: str) -> pd.DataFrame:
    try:
        from pyarrow import ArrowException, parquet  # noqa: PLC0415  (slow to import)
    except ImportError as problem:
        raise LoadError(
            "is a Parquet table, which this pyarrow was built without",
            where=source,
            remedy="Install it by pip, or conda's pyarrow in place of pyarrow-core",
        ) from problem
    try:
        file = parquet.ParquetFile(io.BytesIO(data))
        groups = range(file.metadata.num_row_groups)
        size = sum(file.metadata.row_group(at).total_byte_size for at in groups)
        if size > _MAX_BYTES:
            raise LoadError(
                f"unpacks to more than {_MAX_BYTES // 2**30} GiB",
                where=source,
                remedy="Keep only the time of the job",
            )
        return file.read().to_pandas()
    except (ArrowException, OSError, ValueError, OverflowError, TypeError, KeyError) as problem:
        reason = str(problem).split("\n", 1)[0][:120]
        raise LoadError(
            f"is a Parquet table that cannot be read ({reason})",
            where=source,
            remedy="Write it again",
        ) from problem


def _time_column(frame: pd.DataFrame) -> str | None:
    stored = [name for name in frame.columns if pd.api.types.is_datetime64_any_dtype(frame[name])]
    return stored[0] if stored else named.time_column(list(frame.columns))


def _measures(column: pd.Series[Any]) -> bool:
    """True for numbers that are measured: with a unit in the name, or with fractions."""
    numeric = bool(pd.api.types.is_numeric_dtype(column))
    unit = named.unit_of(str(column.name))
    return numeric and (unit is not None or bool(pd.api.types.is_float_dtype(column)))


def _others(frame: pd.DataFrame, time: str) -> list[str]:
    return [name for name in frame.columns if name != time]


def _stamps(column: pd.Series[Any]) -> Stamps:
    if pd.api.types.is_datetime64_any_dtype(column):
        return _metric_times.of_datetimes(column)
    if column.name == "ts_ns" and pd.api.types.is_integer_dtype(column):
        ns = column.astype("Int64").reset_index(drop=True)
        if ns.notna().any() and int(ns.min()) >= _FIRST_EPOCH_NS:
            return Stamps(ns, "ns since 1970 (UTC), as the table has them", 1)
        return Stamps(ns, "ns from a start that the table does not state", wall=False)
    return _metric_times.read(["" if text is None else str(text) for text in column.tolist()])


def _of_counters(frame: pd.DataFrame, time: str, source: str) -> Recording:
    stamps = _stamps(frame[time])
    times, clock = stamps.placed()
    if not stamps.wall:  # the table's own zero may be another file's too
        times, clock = stamps.ns, Clock(None, stamps.origin)
    values = _floats(frame["value"])
    keep = np.isfinite(values) & times.notna().to_numpy()
    lacking = frame.loc[~keep, "counter"].astype("str").value_counts()
    texts = {name: _texts(frame, name)[keep] for name in ("device", "counter", "unit")}
    table = SCHEMAS["counters"].frame(
        {
            "event": np.flatnonzero(keep),
            "ts_ns": times.array[keep],
            **texts,
            "value": values[keep],
        }
    )
    notes = _metrics.missing_note({str(name): int(n) for name, n in lacking.items()})
    return _metrics.of_table(source, NAME, table, clock, notes=notes)


def _of_columns(frame: pd.DataFrame, time: str, source: str) -> Recording:
    of_row = named.device_column(_others(frame, time))
    measured = {
        name: _floats(frame[name])
        for name in _others(frame, time)
        if name != of_row and pd.api.types.is_numeric_dtype(frame[name])
    }
    measured = {name: values for name, values in measured.items() if np.isfinite(values).any()}
    devices = frame[of_row].astype("str").tolist() if of_row else None
    samples = wide_csv.samples_of(measured, devices)
    notes = wide_csv.notes_of(measured, has_device=devices is not None)
    return samples.recording(source, NAME, _stamps(frame[time]), notes=notes)


def _floats(column: pd.Series[Any]) -> _metrics.Floats:
    try:
        numeric = pd.to_numeric(column, errors="coerce")
    except (TypeError, ValueError):  # lists and the like
        return np.full(len(column), np.nan)
    return np.asarray(numeric.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)


def _texts(frame: pd.DataFrame, name: str) -> pd.Categorical:
    if name not in frame:
        return pd.Categorical([None] * len(frame))
    column = frame[name]
    return column.astype("str").where(column.notna()).astype("category").array
