"""Damaged and hostile logs in every dialect: notes or a polite refusal, in bounded time."""

from __future__ import annotations

import contextlib
import time
import tracemalloc

import numpy as np
import pytest

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import metric_formats

LOGS = {  # one small log in each dialect
    "nvidia-smi-query": "timestamp, index, power.draw [W]\n2026/01/03 15:36:53.507, 0, 5 W\n",
    "nvidia-smi-compute-apps": "pid, process_name, used_memory [MiB]\n7, python, 5 MiB\n",
    "nvidia-smi-dmon": "# gpu   pwr\n# Idx   W\n  0   40\n",
    "nvidia-smi-pmon": "# gpu pid type sm command\n# Idx # C/G % name\n 0 7 C 50 python\n",
    "nvidia-smi-report": "==============NVSMI LOG==============\n"
    "Timestamp : Sat Jan  3 15:36:53 2026\n"
    "GPU 00000000:01:00.0\n    Temperature\n        GPU Current Temp : 53 C\n",
    "dcgmi-dmon": "#Entity   SMACT\nID\nGPU 0  0.5\n",
    "dcgm-exporter": 'DCGM_FI_DEV_SM_CLOCK{gpu="0"} 139\n',
    "dcgm-long": "GPUId,TimeStampUs,Watts\n0,1718369824263312,71.12\n",
    "prometheus-json": '{"status":"success","data":{"resultType":"matrix","result":'
    '[{"metric":{"__name__":"a"},"values":[[1718783836.5,"73.5"]]}]}}',
    "amd-smi": "timestamp,gpu,gfx_activity,vcn_activity\n1786553852,0,5,\"[1, 'N/A']\"\n",
    "rocm-smi": "device,GPU use (%)\ncard0,12\n",
    "tegrastats": "07-21-2025 16:33:42 RAM 17953/62841MB (lfb 9x4MB) CPU [7%@1728,off] "
    "GR3D_FREQ 39%@[305,0] cpu@43.9C VDD_GPU_SOC 2798mW/2798mW\n",
    "tegrastats-json": '[{"timestamp": "2025-08-14T15:00:57", "gpu_usage": 43, "cpu": [2, 4]}]',
    "gpu-z": "Date , GPU Load [%] ,\n2020-03-16 17:13:05 , 7 ,\n",
    "dstat": '"Dstat 0.7.2 CSV output"\n"Host:","h",,,,"Date:","31 Dec 2015 23:59:58 CET"\n'
    '"system","total cpu usage",\n"time","usr","idl"\n31-12 23:59:59,1,90\n',
    "codecarbon": "timestamp,duration,emissions,cpu_power,codecarbon_version\n"
    "2025-07-03T01:43:18,11.4,0.1,23.9,3.0\n",
    "wandb-events": '{"system.gpu.1.gpu": 50, "_timestamp": 1718783836.5}\n',
    "wide-csv": "timestamp,n1_watts\n2026-05-05T19:14:51,2492\n",
}
FORMATS = [known for known in metric_formats.METRICS if known.NAME != "parquet"]  # has its own
LONG = "9" * 10**6


def test_there_is_a_log_for_each_dialect():
    assert set(LOGS) == {known.NAME for known in FORMATS}


@pytest.fixture(params=FORMATS, ids=lambda known: known.NAME)
def known(request):
    return request.param


def test_the_small_log_is_read_whole(known):
    text = LOGS[known.NAME]
    assert [other.NAME for other in metric_formats.METRICS if other.sniff(text.encode())] == [
        known.NAME
    ]
    recording = known.read(text.encode(), "x")
    assert len(recording.table("counters")) > 0
    assert "rows-dropped" not in {note.code for note in recording.notes}


@pytest.mark.parametrize("ends", ["\r\n", "\n\n", "\n\0"])
def test_ends_of_lines_do_not_matter(known, ends):
    plain = known.read(LOGS[known.NAME].encode(), "x")
    other = known.read(LOGS[known.NAME].replace("\n", ends).encode(), "x")
    assert other.table("counters")["value"].tolist() == plain.table("counters")["value"].tolist()


def _variants(text: str):
    *head, last = text.rstrip("\n").split("\n")
    comma = "," if "," in last else " "
    cells = last.split(comma)
    for at in range(len(cells)):
        for cell in ("", LONG, '"', "1e999", "-", "[N/A]", "9223372036854775794", "\x1b[31m<b>"):
            yield "\n".join([*head, comma.join([*cells[:at], cell, *cells[at + 1 :]])])
    yield "\n".join([*head, last + comma + "1"])
    yield "\n".join([*head, comma.join(cells[:-1])])
    yield "\n".join([*head, last[: len(last) // 2]])
    yield "\n".join(head)
    yield head[0] if head else last[:5]


def test_bad_rows_never_end_in_a_traceback(known):
    before = time.perf_counter()
    for text in _variants(LOGS[known.NAME]):
        with contextlib.suppress(LoadError):
            table = known.read(text.encode(), "x").table("counters")
            assert np.isfinite(table["value"]).all()
            assert table["counter"].astype("str").str.len().max() < 300 or table.empty
    assert time.perf_counter() - before < 20


def test_a_row_too_many_is_told(known):
    """A torn line behind good ones: the good ones are read, and a note says what was lost."""
    text = LOGS[known.NAME]
    if known.NAME in {"prometheus-json", "tegrastats-json", "nvidia-smi-report"}:
        pytest.skip("not made of lines of samples")
    recording = known.read(
        (text + text.rstrip("\n").split("\n")[-1] + "\nrubbish;;\n").encode(), "x"
    )
    assert {note.code: note.count for note in recording.notes}["rows-dropped"] == 1
    assert recording.table("counters")["event"].nunique() == 2


def test_one_wide_cell_costs_its_own_width_only():
    """NumPy text is as wide as its widest cell: 2000 rows would take 8 GB."""
    rows = "2026/01/03 15:36:53.507, 0, 5 W\n" * 2000
    text = f"timestamp, index, power.draw [W]\n{rows}2026/01/03 15:36:53.507, 0, {LONG}\n"
    tracemalloc.start()
    metric_formats.METRICS[0].read(text.encode(), "x")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * 2**20


@pytest.mark.parametrize(
    "filler", ["A", "9", " ", ",", "device,", "\n#", "[", '{"a":', "RAM 1/1MB "]
)
def test_looking_at_a_strange_file_is_quick(filler):
    data = (filler * 100_000).encode()
    before = time.perf_counter()
    assert not any(known.sniff(data) for known in metric_formats.METRICS)
    assert time.perf_counter() - before < 2


def test_bytes_overwritten_at_random(known):
    rng = np.random.default_rng(0)
    whole = np.frombuffer(LOGS[known.NAME].encode() * 3, dtype=np.uint8)
    for round_ in range(60):
        data = whole.copy()
        places = rng.integers(0, len(data), size=1 + round_ % 9)
        data[places] = rng.integers(0, 256, size=len(places))
        with contextlib.suppress(LoadError):
            known.read(data[: rng.integers(1, len(data) + 1)].tobytes(), "x")
