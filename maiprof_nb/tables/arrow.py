"""Tables as Arrow and back, without copying what need not be copied.

The values of an integer column, of a nullable integer column and the codes of a category are
the very same memory on both sides, so that a table in a memory-mapped file is shared by every
kernel that opens it. Only the bit mask of missing values becomes bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from maiprof_nb.tables.schema import Column, Schema

_NUMBERS = {"Int64": np.int64, "Float64": np.float64}


def to_arrow(frame: pd.DataFrame) -> pa.Table:
    """A table of any schema as Arrow, column by column."""
    names = [str(name) for name in frame.columns]
    return pa.table([_to_arrow(frame[name]) for name in names], names=names)


def _to_arrow(series: pd.Series[Any]) -> pa.Array:
    values = series.array
    if isinstance(values, pd.Categorical):
        codes = np.asarray(values.codes)
        texts = pa.array(values.categories.tolist(), type=pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), texts)
    if str(values.dtype) in _NUMBERS:
        numbers = values.to_numpy(_NUMBERS[str(values.dtype)], na_value=0)
        return pa.array(numbers, mask=np.asarray(values.isna()))
    return pa.array(values.to_numpy())


def from_arrow(table: pa.Table, schema: Schema) -> pd.DataFrame:
    """A table of `schema` as a DataFrame on the same memory (read-only)."""
    made = {column.name: _from_arrow(table[column.name], column) for column in schema.columns}
    return pd.DataFrame(made, copy=False)


def _from_arrow(chunked: pa.ChunkedArray, column: Column) -> Any:
    array = chunked.combine_chunks() if chunked.num_chunks != 1 else chunked.chunk(0)
    if isinstance(array, pa.ChunkedArray):  # no rows: combine_chunks keeps it chunked
        array = pa.array([], type=chunked.type)
    if column.dtype == "category":
        codes = _values(array.indices)
        if array.null_count:
            codes = np.where(_missing(array), np.array(-1, dtype=codes.dtype), codes)
        texts = pd.Index(array.dictionary.to_pylist(), dtype="str")
        return pd.Categorical.from_codes(codes, categories=texts, validate=False)
    if column.dtype == "Int64":
        return pd.arrays.IntegerArray(_values(array), _missing(array))
    if column.dtype == "Float64":
        return pd.arrays.FloatingArray(_values(array), _missing(array))
    if column.dtype == "bool":
        return array.to_numpy(zero_copy_only=False).astype(bool)
    return _values(array)


def _values(array: pa.Array) -> npt.NDArray[Any]:
    """The numbers of an array, whatever stands where one is missing."""
    kind = array.type.to_pandas_dtype()
    if len(array) == 0:
        return np.empty(0, dtype=kind)
    return np.frombuffer(array.buffers()[1], dtype=kind)[array.offset : array.offset + len(array)]


def _missing(array: pa.Array) -> npt.NDArray[np.bool_]:
    bits = array.buffers()[0]
    if bits is None or not array.null_count:
        return np.zeros(len(array), dtype=bool)
    stop = array.offset + len(array)
    known = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little", count=stop)
    return known[array.offset :] == 0
