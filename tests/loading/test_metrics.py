from __future__ import annotations

import contextlib
import csv
import os
import re
from pathlib import Path

import numpy as np
import pytest

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import dcgm_exporter, dcgmi_dmon, smi_dmon, smi_query, sources
from maiprof_nb.recording import Recording

CORPUS = (
    Path(os.environ.get("MAIPROF_CORPUS", Path(__file__).parents[3] / "shared" / "corpus"))
    / "metrics"
)
FORMATS = (smi_query, smi_dmon, dcgmi_dmon, dcgm_exporter)  # the others: test_metrics_dialects
OURS = {  # by the table of dialects in the corpus' FORMAT.md
    "smi-banner": smi_query,
    "smi-loop-4090": smi_query,
    "dcgmi-dmon": dcgmi_dmon,
    "dcgm-exporter": dcgm_exporter,
}
SECOND_NS = 10**9
H = 3600 * SECOND_NS


def _format_of(path: Path):
    """What the corpus says the file is; None for dialects that are not read."""
    if path.parent.name == "smi-captures":
        if path.name.endswith("_dmon.txt"):
            return smi_dmon
        return smi_query if "query" in path.name else None
    return OURS.get(path.parent.name)


ALL = [p for p in sorted(CORPUS.glob("*/*")) if p.is_file()]
NO_CORPUS = [pytest.param(None, marks=pytest.mark.skip(reason=f"no corpus at {CORPUS}"))]


def _params(paths):
    return [pytest.param(p, id=f"{p.parent.name}/{p.name}") for p in paths] or NO_CORPUS


def _content(path: Path) -> bytes:
    return sources.content(str(path))[0]


def _read(path: Path) -> Recording:
    return _format_of(path).read(_content(path), str(path))


def _corpus(name: str) -> Path:
    if not (CORPUS / name).exists():
        pytest.skip(f"no corpus at {CORPUS}")
    return CORPUS / name


def _codes(recording: Recording) -> dict[str, int]:
    return {note.code: note.count for note in recording.notes}


def _series(recording: Recording, counter: str, device: str | None = None) -> list[float]:
    table = recording.table("counters")
    chosen = table["counter"] == counter
    if device is not None:
        chosen &= table["device"] == device
    return table.loc[chosen, "value"].tolist()


@pytest.mark.parametrize("path", _params([p for p in ALL if _format_of(p)]))
def test_every_sample_has_device_time_and_number(path):
    recording = _read(path)
    table = recording.table("counters")
    assert recording.kind == "metrics"
    assert len(table) > 0
    assert recording.events == {"sample": len(table)}
    assert table["device"].notna().all()
    assert np.isfinite(table["value"]).all()
    assert (table["ts_ns"] >= 0).all()
    assert table["event"].is_monotonic_increasing


# --- nvidia-smi --query-gpu ---------------------------------------------------------------


def test_the_4090_loop_has_its_figures():
    """SOURCES.md: 2619 rows, 2880 s, mean utilisation 83 %, memory 1.1-18.1 GB."""
    recording = _read(_corpus("smi-loop-4090/gpu_log.csv"))
    utilisation = _series(recording, "utilization.gpu")
    memory = _series(recording, "memory.used")
    assert len(utilisation) == 2619
    assert np.mean(utilisation) == pytest.approx(83, abs=0.5)
    assert (min(memory) / 1000, max(memory) / 1000) == pytest.approx((1.1, 18.1), abs=0.05)
    assert recording.span.dur_ns / SECOND_NS == pytest.approx(2880, abs=1)
    units = recording.table("counters").drop_duplicates("counter").set_index("counter")["unit"]
    assert units.to_dict() == {
        "utilization.gpu": "%", "utilization.memory": "%", "memory.used": "MiB", "power.draw": "W",
    }  # fmt: skip
    # First stamp in the file: 2026/01/03 15:36:53.507 = 1767454613.507 s when read as UTC.
    assert recording.clock.epoch_ns == 1_767_454_613_507_000_000
    assert recording.clock.uncertainty_ns == 14 * H
    assert "read as UTC" in recording.clock.origin
    assert not recording.notes


@pytest.mark.parametrize("path", _params([p for p in ALL if p.name.endswith("query_gpu.csv")]))
def test_all_fields_agree_with_the_cells(path):
    """Every cell that is a number and a unit becomes exactly that sample."""
    with path.open(encoding="utf-8", newline="") as handle:
        header, cells = list(csv.reader(handle, skipinitialspace=True))
    expected = {
        name.rsplit(" [", 1)[0]: float(cell.split()[0])
        for name, cell in zip(header, cells, strict=True)
        if name.endswith("]") and re.fullmatch(r"[\d.]+ \S+", cell)
    }
    lacking = {
        name.rsplit(" [", 1)[0]
        for name, cell in zip(header, cells, strict=True)
        if name.endswith("]") and not re.match(r"\d", cell)
    }
    recording = _read(path)
    table = recording.table("counters").set_index("counter")
    assert len(expected) > 10
    assert table["value"].reindex(expected).to_dict() == expected
    assert not lacking & set(table.index)
    assert _codes(recording)["missing-values"] >= len(lacking)
    assert "driver_version" not in table.index
    assert set(table.loc[["temperature.gpu"], "unit"]) == {"C"}


def test_masks_states_and_flags_are_numbers():
    header = "index, pstate, clocks_event_reasons.active, clocks_event_reasons.gpu_idle"
    recording = smi_query.read(
        f"{header}\n0, P2, 0x0000000000000024, Not Active\n0, P8, 0x1, Active\n".encode(), "x"
    )
    assert _series(recording, "pstate") == [2, 8]
    assert _series(recording, "clocks_event_reasons.active") == [36, 1]
    assert _series(recording, "clocks_event_reasons.gpu_idle") == [0, 1]


def test_missing_marks_are_missing_and_counted():
    """The marks of FORMAT.md and of the all-fields captures."""
    marks = [
        "[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[Function Not Found]",
        "[Requested functionality has been deprecated]", "[GPU requires reset]",
    ]  # fmt: skip
    rows = "".join(f"0, {mark}, 5 W\n" for mark in marks)
    recording = smi_query.read(
        f"index, utilization.gpu [%], power.draw [W]\n{rows}0, 7 %, 5 W\n".encode(), "x"
    )
    assert _series(recording, "utilization.gpu") == [7]
    assert _series(recording, "power.draw") == [5] * 8
    assert _codes(recording) == {"missing-values": 7}


def test_error_lines_between_rows_are_told():
    """Seen in public text (FORMAT.md, error markers)."""
    error = "Unable to determine the device handle for GPU0000:02:00.0: Unknown Error"
    text = (
        "timestamp, index, utilization.gpu [%]\n2026/01/03 15:36:53.507, 0, 34 %\n"
        f"{error}\n2026/01/03 15:36:54, 0, 35 %\nyesterday, 0, 3 %\n"
    )
    recording = smi_query.read(text.encode(), "x")
    assert _series(recording, "utilization.gpu") == [34, 35]
    assert recording.table("counters")["ts_ns"].tolist() == [0, 493_000_000]
    note = next(note for note in recording.notes if note.code == "rows-dropped")
    assert note.count == 2
    assert "line 3" in note.text
    assert "Unable to determine" in note.text


def test_nounits_and_utf_16_read_alike():
    """PowerShell's > writes UTF-16."""
    text = "timestamp, index, memory.used [MiB]\r\n2026/01/03 15:36:53.507, 1, 1129\r\n"
    for data in (text.encode(), text.encode("utf-16"), text.encode("utf-8-sig")):
        assert smi_query.sniff(data)
        table = smi_query.read(data, "x").table("counters")
        assert table[["device", "unit", "value"]].to_numpy().tolist() == [["1", "MiB", 1129.0]]


def test_one_log_of_several_gpus_and_restarts():
    header = "index, utilization.gpu [%]\n"
    other = "index, power.draw [W]\n"
    text = f"{header}0, 1 %\n1, 2 %\n{header}0, 3 %\n1, 4 %\n{other}0, 50 W\n"
    recording = smi_query.read(text.encode(), "x")
    assert _series(recording, "utilization.gpu", "1") == [2, 4]
    table = recording.table("counters")
    assert table["ts_ns"].tolist() == [0, 0, SECOND_NS, SECOND_NS, 2 * SECOND_NS]
    assert table["event"].tolist() == [0, 1, 2, 3, 4]
    assert recording.clock.ordered_only
    assert "one sample a second" in recording.clock.origin


@pytest.mark.parametrize(
    ("name", "nuls"),  # SOURCES.md gives 2231, 588 and "210 000" NUL bytes
    [("gpu_stats_nul.csv", 2231), ("gpu_stats_nul_2.csv", 588), ("gpu_stats_long.csv", 210_000)],
)
def test_nul_bytes_are_cut_out(name, nuls):
    path = _corpus(f"smi-banner/{name}")
    recording = _read(path)
    assert _codes(recording)["nul-bytes"] == pytest.approx(nuls, rel=0.001)
    assert _codes(recording)["banner-skipped"] == 19
    whole = re.compile(
        rb"(?<![^\0\n])0, Tesla V100-(?:SXM2|PCIE)-32GB(?:, \d+ MiB){3}, \d+, P\d, (\d+) %, \d+ %$",
        re.MULTILINE,
    )
    expected = [float(found) for found in whole.findall(path.read_bytes())]
    assert _series(recording, "utilization.gpu") == expected


def test_two_models_under_one_index_are_told_apart():
    recording = _read(_corpus("smi-banner/gpu_stats_nul_mixed_devices.csv"))
    assert recording.meta["devices"] == ["0 (Tesla V100-SXM2-32GB)", "0 (Tesla V100-PCIE-32GB)"]
    assert _codes(recording)["devices-mixed"] == 1
    assert _codes(recording)["rows-dropped"] == 2  # " 37 %" and "esla V100-PCIE-32GB, ..."


def test_a_query_without_device_is_one_gpu():
    recording = smi_query.read(b"utilization.gpu [%]\n34 %\n35 %\n", "x")
    assert recording.meta["devices"] == ["0"]
    assert _codes(recording) == {"device-unknown": 1}


def test_a_query_of_descriptions_only_has_no_samples():
    recording = smi_query.read(b"index, name\n0, NVIDIA H200\n", "x")
    assert _codes(recording) == {"no-samples": 1}


def test_a_query_without_header_is_refused():
    with pytest.raises(LoadError, match="noheader"):
        smi_query.read(b"2026/01/03 15:36:53.507, 34 %\n", "x")


# --- nvidia-smi dmon ----------------------------------------------------------------------


@pytest.mark.parametrize("path", _params([p for p in ALL if p.name.endswith("_dmon.txt")]))
def test_dmon_agrees_with_the_columns(path):
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    names, units, rows = lines[0][2:], lines[1][2:], lines[2:]
    table = _read(path).table("counters")
    for at, (name, unit) in enumerate(zip(names, units, strict=True), start=1):
        expected = [float(row[at]) for row in rows if row[at] != "-"]
        mine = table[table["counter"] == name]
        assert mine["value"].tolist() == expected
        assert set(mine["unit"]) <= {unit}
    assert set(table["device"]) == {"0"}
    assert table["ts_ns"].max() == (len(rows) - 1) * SECOND_NS


DMON = """{stamp}  gpu    pwr     sm     fb
{units}  Idx      W      %     MB
{first}    0     40      -    100
{first}    1     41      7    200
{second}    0     42      8    300
#{rest}
"""


def test_dmon_with_date_and_time():
    """Layout of dmon -o DT (nvidia-smi's manual): #YYYYMMDD HH:MM:SS before gpu."""
    text = DMON.format(
        stamp="#Date       Time     ", units="#YYYYMMDD   HH:MM:SS ",
        rest="Date Time gpu pwr sm fb",
        first=" 20260103   23:59:59 ", second=" 20260104   00:00:00 ",
    )  # fmt: skip
    recording = smi_dmon.read(text.encode(), "x")
    assert smi_dmon.sniff(text.encode())
    assert _series(recording, "pwr", "0") == [40, 42]
    table = recording.table("counters")
    assert sorted(set(table["ts_ns"])) == [0, SECOND_NS]
    assert set(table.loc[table["counter"] == "fb", "unit"]) == {"MiB"}
    assert recording.clock.epoch_ns == 1_767_484_799 * SECOND_NS  # 2026-01-03 23:59:59 as UTC
    assert recording.clock.uncertainty_ns == 14 * H
    assert _codes(recording) == {"missing-values": 1}


def test_dmon_with_time_of_day_passes_midnight():
    text = DMON.format(
        stamp="#Time     ", units="#HH:MM:SS ", rest="Time gpu pwr sm fb",
        first=" 23:59:58 ", second=" 00:00:01 ",
    )  # fmt: skip
    recording = smi_dmon.read(text.encode(), "x")
    assert sorted(set(recording.table("counters")["ts_ns"])) == [0, 3 * SECOND_NS]
    assert recording.clock.epoch_ns is None
    assert not recording.clock.ordered_only


def test_dmon_cut_before_the_units_and_in_a_row():
    recording = smi_dmon.read(b"# gpu   pwr\n  0   40\n  0\n", "x")
    assert _series(recording, "pwr") == [40]
    assert _codes(recording) == {"rows-dropped": 1}


# --- dcgmi dmon ---------------------------------------------------------------------------


def test_dcgmi_names_mig_instances_apart():
    recording = _read(_corpus("dcgmi-dmon/mig_instances_old_header.txt"))
    assert _series(recording, "SMACT", "0") == [0.429]
    assert _series(recording, "TENSO", "GPU-I 1") == [0.02]
    assert set(recording.table("counters")["unit"]) == {"ratio"}
    assert recording.clock.ordered_only


def test_dcgmi_first_sample_is_missing():
    recording = _read(_corpus("dcgmi-dmon/h100nvl_first_sample_na.txt"))
    assert recording.table("counters")["ts_ns"].tolist() == [SECOND_NS] * 3
    assert _codes(recording) == {"missing-values": 3}


def test_dcgmi_eight_gpus_share_one_tick():
    recording = _read(_corpus("dcgmi-dmon/a100_8gpu_idle.txt"))
    assert _series(recording, "TMPTR") == [26, 26, 25, 26, 27, 27, 27, 28]
    assert recording.meta["devices"] == [str(n) for n in range(7, -1, -1)]
    assert set(recording.table("counters")["ts_ns"]) == {0}
    units = recording.table("counters").drop_duplicates("counter").set_index("counter")["unit"]
    assert units["SMACT"] == "ratio"  # its line of units, copied by hand, says (us)
    assert units["MCUTL"] == "%"


def test_dcgmi_units_of_unknown_fields_come_from_their_line():
    recording = dcgmi_dmon.read(
        b"#Entity   SMACT   NEWFD\nID        -       GB\nGPU 0  0.5  3\n", "x"
    )
    units = recording.table("counters").set_index("counter")["unit"].to_dict()
    assert units == {"SMACT": "ratio", "NEWFD": "GB"}


# --- dcgm-exporter ------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2])
def test_exporter_readme_samples(number):
    """SOURCES.md: the sentinel means not supported; ``...`` is the author's abridgement."""
    recording = _read(_corpus(f"dcgm-exporter/readme_metrics_{number}.prom"))
    table = recording.table("counters")
    assert table["counter"].tolist() == ["DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_MEM_CLOCK"]
    assert table["value"].tolist() == [139, 405]
    assert set(table["unit"]) == {"MHz"}
    assert set(table["device"]) == {"0"}
    assert _codes(recording) == {"rows-dropped": 2, "blank-values": 1, "missing-values": 1}


def test_exporter_time_stamps_make_a_clock():
    lines = [
        'DCGM_FI_PROF_SM_ACTIVE{gpu="0",GPU_I_ID="3",pod="a\\"b,}"} 0.25 1718783836956',
        'DCGM_FI_PROF_SM_ACTIVE{gpu="0",GPU_I_ID="3",pod="a\\"b,}"} 5e-1 1718783837956',
        'DCGM_FI_PROF_SM_ACTIVE{gpu="0",GPU_I_ID="3",pod="a\\"b,}"} NaN 1718783838956',
        'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 7',
        "process_open_fds 12 1718783836956",
    ]
    recording = dcgm_exporter.read("\n".join(lines).encode(), "x")
    table = recording.table("counters")
    assert table["value"].tolist() == [0.25, 0.5, 12]
    assert table["ts_ns"].tolist() == [0, SECOND_NS, 0]
    assert table["device"].tolist()[:2] == ["0 GPU-I 3"] * 2
    assert table["device"].isna().tolist() == [False, False, True]
    assert table["unit"].iloc[0] == "ratio"
    assert recording.clock.epoch_ns == 1_718_783_836_956_000_000
    assert recording.clock.uncertainty_ns == 1_000_000
    assert _codes(recording) == {"rows-dropped": 1, "missing-values": 1}


def test_exporter_scrapes_in_a_row_are_a_course():
    scrape = '# HELP DCGM_FI_DEV_X Something (in mJ).\nDCGM_FI_DEV_X{{gpu="1",Hostname="{}"}} {}\n'
    text = "".join(scrape.format("a", n) + scrape.format("b", -n) for n in (1, 2, 3))
    recording = dcgm_exporter.read(text.encode(), "x")
    assert _series(recording, "DCGM_FI_DEV_X", "a/1") == [1, 2, 3]
    assert _series(recording, "DCGM_FI_DEV_X", "b/1") == [-1, -2, -3]
    table = recording.table("counters")
    assert sorted(set(table["ts_ns"])) == [0, SECOND_NS, 2 * SECOND_NS]
    assert set(table["unit"]) == {"mJ"}


# --- anything else ------------------------------------------------------------------------


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.NAME)
def test_a_header_alone_is_no_samples(known):
    heads = {
        smi_query: b"timestamp, index, utilization.gpu [%]\n",
        smi_dmon: b"# gpu   pwr\n# Idx   W\n",
        dcgmi_dmon: b"#Entity  SMACT\nID\n",
        dcgm_exporter: b"# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n",
    }
    assert known.sniff(heads[known])
    recording = known.read(heads[known], "x")
    assert _codes(recording) == {"no-samples": 1}
    assert recording.table("counters").empty


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.NAME)
def test_damage_never_ends_in_a_traceback(known):
    """Bytes of real logs, cut and overwritten at fixed random places."""
    rng = np.random.default_rng(0)
    paths = [p for p in ALL if _format_of(p) is known and p.stat().st_size < 20_000]
    if not paths:
        pytest.skip(f"no corpus at {CORPUS}")
    for round_ in range(60):
        data = np.frombuffer(_content(paths[round_ % len(paths)]), dtype=np.uint8).copy()
        places = rng.integers(0, len(data), size=1 + round_ % 20)
        data[places] = rng.integers(0, 256, size=len(places))
        with contextlib.suppress(LoadError):
            known.read(data[: rng.integers(1, len(data) + 1)].tobytes(), "x")
