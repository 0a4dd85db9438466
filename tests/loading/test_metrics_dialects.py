"""Small logs written by hand in each dialect, and figures of real ones read off by eye."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from maiprof_nb.errors import LoadError
from maiprof_nb.loading import registry, sources
from maiprof_nb.recording import Recording

CORPUS = (
    Path(os.environ.get("MAIPROF_CORPUS", Path(__file__).parents[3] / "shared" / "corpus"))
    / "metrics"
)
SECOND_NS = 10**9
H = 3600 * SECOND_NS


def _read(text: str | bytes) -> Recording:
    return registry.read(text.encode() if isinstance(text, str) else text, "x")


def _corpus(name: str) -> Recording:
    if not (CORPUS / name).exists():
        pytest.skip(f"no corpus at {CORPUS}")
    return registry.read(sources.content(str(CORPUS / name))[0], name)


def _rows(recording: Recording, *columns: str) -> list[tuple]:
    table = recording.table("counters").astype(dict.fromkeys(("device", "counter", "unit"), object))
    table = table.where(table.notna(), None)
    columns = columns or ("ts_ns", "device", "counter", "unit", "value")
    return list(table[list(columns)].itertuples(index=False, name=None))


def _series(recording: Recording, counter: str, device: str | None = None) -> list[float]:
    table = recording.table("counters")
    mine = table["device"].isna() if device is None else table["device"] == device
    return table.loc[mine & (table["counter"] == counter), "value"].tolist()


def _codes(recording: Recording) -> dict[str, int]:
    return {note.code: note.count for note in recording.notes}


# --- processes: query-compute-apps, pmon ---------------------------------------------------


def test_compute_apps_keep_processes_apart():
    """Cells of the file, read by eye."""
    recording = _corpus("smi-captures/h100_load_compute_apps.csv")
    assert _rows(recording) == [
        (0, "00000000:00:09.0", "used_gpu_memory [pid 11327 memhog]", "MiB", 2566.0),
        (0, "00000000:00:09.0", "used_gpu_memory [pid 11328 memhog]", "MiB", 1542.0),
        (0, "00000000:00:09.0", "used_gpu_memory [pid 11345 gpu_burn]", "MiB", 15690.0),
    ]
    assert recording.meta["processes"]["11327"] == "/root/tools/memhog"
    assert recording.clock.epoch_ns == 1_784_016_773_500_000_000  # 2026-07-14 08:12:53.5 as UTC
    assert recording.clock.uncertainty_ns == 14 * H


def test_compute_apps_without_time_and_with_a_comma_in_the_name():
    header = "pid, process_name, used_memory [MiB]\n"
    tick = "7, C:\\a, b\\x.exe, {} MiB\n8, python, [N/A]\n"
    recording = _read(header + tick.format(5) + tick.format(6) + "oops\n9, p\n")
    assert _rows(recording, "ts_ns", "counter", "value") == [
        (0, "used_memory [pid 7 x.exe]", 5.0),
        (SECOND_NS, "used_memory [pid 7 x.exe]", 6.0),
    ]
    assert recording.clock.ordered_only
    assert _codes(recording) == {"missing-values": 2, "rows-dropped": 2}


def test_pmon_of_a_real_load():
    """gpu_burn's sm and mem in all five ticks; memhog has only ``-``."""
    recording = _corpus("smi-captures/h100_load_pmon.txt")
    assert _series(recording, "sm [pid 11345 gpu_burn]", "0") == [99] * 5
    assert _series(recording, "mem [pid 11345 gpu_burn]", "0") == [10] * 5
    assert sorted(set(recording.table("counters")["ts_ns"])) == [n * SECOND_NS for n in range(5)]
    assert _codes(recording) == {"missing-values": 5 * (2 * 6 + 4)}


PMON = """# gpu         pid   type     sm    mem    command
# Idx           #    C/G      %      %    name
    0          10     C      5      -    NVIDIA Overlay.
    1           -     -      -      -    -
    0          10     C      6      2    NVIDIA Overlay.
    0          11     C      7      3    python
    1          12     C      8      4    python
    1
"""


def test_pmon_ticks_gaps_and_blanks_in_names():
    recording = _read(PMON)
    assert _rows(recording) == [
        (0, "0", "sm [pid 10 NVIDIA Overlay.]", "%", 5.0),
        (SECOND_NS, "0", "sm [pid 10 NVIDIA Overlay.]", "%", 6.0),
        (SECOND_NS, "0", "mem [pid 10 NVIDIA Overlay.]", "%", 2.0),
        (SECOND_NS, "0", "sm [pid 11 python]", "%", 7.0),
        (SECOND_NS, "0", "mem [pid 11 python]", "%", 3.0),
        (SECOND_NS, "1", "sm [pid 12 python]", "%", 8.0),
        (SECOND_NS, "1", "mem [pid 12 python]", "%", 4.0),
    ]
    assert _codes(recording) == {"missing-values": 1, "rows-dropped": 1}


def test_pmon_with_date_and_time():
    text = (
        "#Date       Time        gpu   pid   type   sm   command\n"
        "#YYYYMMDD   HH:MM:SS    Idx     #    C/G    %   name\n"
        " 20260103   23:59:59      0     7     C    50   a\n"
        " 20260104   00:00:01      0     7     C    60   a\n"
    )
    recording = _read(text)
    assert _rows(recording, "ts_ns", "value") == [(0, 50.0), (2 * SECOND_NS, 60.0)]
    assert recording.clock.epoch_ns == 1_767_484_799 * SECOND_NS


# --- nvidia-smi -q -------------------------------------------------------------------------


def test_report_of_a_mig_gpu():
    """Lines of the file, read by eye."""
    recording = _corpus("smi-captures/h100-mig_load_q.txt")
    assert _series(recording, "Temperature / GPU Current Temp", "0") == [53]
    assert _series(recording, "GPU Power Readings / Average Power Draw", "0") == [432.21]
    assert _series(recording, "FB Memory Usage / Used", "0") == [11125]
    assert _series(recording, "Shared FB Memory Usage / Used", "0 GPU-I 2") == [11091]
    assert _series(recording, "Shared FB Memory Usage / Used", "0 GPU-I 10") == [9]
    assert _series(recording, "Used GPU Memory [pid 21180 memhog]", "0 GPU-I 2") == [2296]
    assert recording.meta["bus_ids"] == ["00000000:00:09.0"]
    assert recording.clock.epoch_ns == 1_784_019_644 * SECOND_NS  # 2026-07-14 09:00:44 as UTC
    assert _codes(recording) == {"one-moment": 1}


def test_reports_of_some_gpus_several_times():
    gpu = "GPU 00000000:02:00.0\n    Utilization\n        GPU        : {} %\n        Memory : N/A\n"
    report = (
        "==============NVSMI LOG==============\n\nTimestamp : Sat Jan  3 15:36:{} 2026\n"
        "Attached GPUs : 2\n"
    )
    recording = _read(report.format(53) + gpu.format(7) + report.format(55) + gpu.format(9))
    assert _rows(recording) == [
        (0, "00000000:02:00.0", "Utilization / GPU", "%", 7.0),
        (2 * SECOND_NS, "00000000:02:00.0", "Utilization / GPU", "%", 9.0),
    ]
    assert not recording.notes


# --- DCGM ----------------------------------------------------------------------------------


def test_dcgm_long_has_epoch_times_and_units():
    recording = _corpus("dcgm-long/result.csv")
    watts = recording.table("counters")
    assert recording.meta["devices"] == [str(n) for n in range(8)]
    assert set(watts["unit"]) == {"W"}
    assert recording.span.dur_ns / SECOND_NS == pytest.approx(2.07, abs=0.01)  # SOURCES.md
    # the first row is 0,1718369824263312,71.12; the earliest of the file is GPU 4's
    first = recording.clock.epoch_ns + int(watts["ts_ns"].iloc[0])
    assert (first, watts["value"].iloc[0]) == (1_718_369_824_263_312_000, 71.12)


def test_dcgm_long_blanks_and_broken_rows():
    text = (
        "GPUId,TimeStampUs,Field,Values\n0,1718783836956328,power_usage_instant,71.20\n"
        "0,1718783836956329,gpu_temp,2147483632\n1,1718783836956327,throttle_reason_idle,1\n"
        "1,later,gpu_temp,5\n1,1718783836956327,gpu_temp\n"
    )
    recording = _read(text)
    assert _rows(recording) == [
        (1000, "0", "power_usage_instant", "W", 71.2),
        (0, "1", "throttle_reason_idle", None, 1.0),
    ]
    assert _codes(recording) == {"rows-dropped": 2, "blank-values": 1, "missing-values": 1}


# --- Prometheus ----------------------------------------------------------------------------


def _answer(*series: tuple[dict, list], **more) -> str:
    result = [{"metric": labels, "values": values} for labels, values in series]
    return json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": result}, **more}
    )


UTIL = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "UUID": "GPU-1", "gpu": "3", "Hostname": "a"}


def test_prometheus_range():
    text = _answer(
        ({**UTIL, "job": "x"}, [[1718783836.5, "73.5"], [1718783851.5, "NaN"]]),
        ({**UTIL, "job": "y"},
         [[1718783836.5, "73.5"], [1718783866.5, "+Inf"], [1718783881.5, "7"]]),
        ({"__name__": "DCGM_FI_PROF_SM_ACTIVE", "gpu": "3", "Hostname": "a"},
         [[1718783836.5, "0.25"], [1718783851.5, "9223372036854775794"]]),
        ({"__name__": "node_load1", "instance": "n:9100", "job": "node"}, [[1718783836.5, "12"]]),
        ({"__name__": "L", "gpu": "3", "Hostname": "a", "nvlink": "0"}, [[1718783836.5, "1"]]),
        ({"__name__": "L", "gpu": "3", "Hostname": "a", "nvlink": "1"}, [[1718783836.5, "2"]]),
    )  # fmt: skip
    recording = _read(text)
    assert _series(recording, "DCGM_FI_DEV_GPU_UTIL", None) == []
    assert recording.meta["devices"] == ["3"]
    assert _series(recording, "DCGM_FI_DEV_GPU_UTIL", "3") == [73.5, 7]
    assert _series(recording, "DCGM_FI_PROF_SM_ACTIVE", "3") == [0.25]
    assert _series(recording, "node_load1 {instance=n:9100}") == [12]
    assert _series(recording, "L {nvlink=1}", "3") == [2]
    assert recording.clock.epoch_ns == 1_718_783_836_500_000_000
    assert recording.clock.uncertainty_ns == 15 * SECOND_NS  # the step
    codes = _codes(recording)
    assert codes == {"series-duplicated": 1, "blank-values": 1, "missing-values": 3}
    units = recording.table("counters").drop_duplicates("counter").set_index("counter")["unit"]
    assert (units["DCGM_FI_DEV_GPU_UTIL"], units["DCGM_FI_PROF_SM_ACTIVE"]) == ("%", "ratio")


def test_prometheus_vector_and_promtool():
    vector = (
        '{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up"},'
        '"value":[1718783836.5,"1"]}]}}'
    )
    assert _rows(_read(vector), "device", "counter", "value") == [(None, "up", 1.0)]
    tool = '[{"metric":{"__name__":"up"},"values":[[1718783836.5,"1"],[1718783837.5,"0"]]}]'
    assert _rows(_read(tool), "ts_ns", "value") == [(0, 1.0), (SECOND_NS, 0.0)]


def test_prometheus_cut_and_failed():
    cut = _answer((UTIL, [[1, "2"]]), (UTIL, [[2, "3"]]))[:-60]
    recording = _read(cut)
    assert _series(recording, "DCGM_FI_DEV_GPU_UTIL", "3") == [2]
    assert _codes(recording) == {"cut": 1}
    failed = '{"status":"error","errorType":"bad_data","error":"invalid parameter \\"query\\""}'
    with pytest.raises(LoadError, match=r"an error that Prometheus answered \(invalid parameter"):
        _read(failed)
    assert _codes(_read(_answer())) == {"no-samples": 1}


# --- AMD -----------------------------------------------------------------------------------


def test_rocm_smi_tables_share_a_tick():
    """Layout seen in public text (FORMAT.md): a warning, then several tables a call."""
    call = (
        "WARNING: AMD GPU device(s) is/are in a low-power state. Check power control\n\n"
        "device,Temperature (Sensor edge) (C),GPU use (%)\ncard0,45.0,{}\ncard1,N/A,2\n\n"
        "device,sclk clock speed:,VRAM Total Used Memory (B),Performance Level\n"
        "card0,(400Mhz),17453056,auto\n\n"
    )
    recording = _read(call.format(12) + call.format(13) + "card0,1\n")
    assert _rows(recording)[:5] == [
        (0, "card0", "Temperature (Sensor edge)", "C", 45.0),
        (0, "card0", "GPU use", "%", 12.0),
        (0, "card1", "GPU use", "%", 2.0),
        (0, "card0", "sclk clock speed", "MHz", 400.0),
        (0, "card0", "VRAM Total Used Memory", "B", 17453056.0),
    ]
    table = recording.table("counters")
    assert table.loc[table["counter"] == "GPU use", "ts_ns"].tolist() == [
        0,
        0,
        SECOND_NS,
        SECOND_NS,
    ]
    assert recording.clock.ordered_only
    assert _codes(recording) == {"source-warning": 2, "missing-values": 2, "rows-dropped": 1}


def test_amd_smi_of_eight_gpus():
    """Cells of the file's first and ninth row, read by eye."""
    recording = _corpus("amd-smi/gpu_metrics_head.csv")
    assert recording.meta["devices"] == [str(n) for n in range(8)]
    assert recording.clock.epoch_ns == 1_786_553_852 * SECOND_NS
    assert recording.clock.uncertainty_ns == SECOND_NS
    assert sorted(set(recording.table("counters")["ts_ns"])) == [0, SECOND_NS]
    assert _series(recording, "socket_power", "0")[0] == 238
    assert _series(recording, "gfx_busy_inst_xcp_0[7]", "0") == [0, 0]
    assert _series(recording, "vcn_activity[0]", "0") == []  # N/A
    assert _series(recording, "hotspot", "0") == [37, 37]


def test_amd_smi_lists_and_order():
    text = (
        "gpu,gfx_activity,vcn_activity,power_management\n0,5,\"[1, 'N/A']\",ENABLED\n\n"
        '0,6,"[3, 4]",ENABLED\n0,6\n'
    )
    recording = _read(text)
    assert _rows(recording) == [
        (0, "0", "gfx_activity", "%", 5.0),
        (0, "0", "vcn_activity[0]", "%", 1.0),
        (SECOND_NS, "0", "gfx_activity", "%", 6.0),
        (SECOND_NS, "0", "vcn_activity[0]", "%", 3.0),
        (SECOND_NS, "0", "vcn_activity[1]", "%", 4.0),
    ]
    assert _codes(recording) == {"rows-dropped": 1, "missing-values": 1}


# --- Jetson --------------------------------------------------------------------------------


def test_tegrastats_line_by_eye():
    recording = _corpus("tegrastats/tegrastats_old.log")
    first = recording.table("counters")
    first = first[first["event"] == 0].set_index("counter")
    expected = {
        "RAM": 17953, "RAM total": 62841, "CPU[1]": 31, "CPU[1] frequency": 1036, "GR3D_FREQ": 39,
        "EMC_FREQ frequency": 204, "VDD_GPU_SOC": 2798, "VIN_SYS_5V0": 3315,
        "temperature gpu": 40.093, "cpu.utilization": (7 + 31 + 7 + 42 + 4 + 5 + 6 + 1) / 8,
    }  # fmt: skip
    assert first["value"].reindex(expected).to_dict() == expected
    assert first.loc["GR3D_FREQ", "device"] == "0"
    assert pd.isna(first.loc["RAM", "device"])
    assert first.loc["VDD_CPU_CV", "unit"] == "mW"
    assert recording.clock.epoch_ns == 1_753_115_622 * SECOND_NS  # 2025-07-21 16:33:42 as UTC
    assert recording.clock.uncertainty_ns == 14 * H


def test_tegrastats_of_older_boards():
    """Layout of tegrastats before JetPack 5: no stamp, no mW, engines without a frequency."""
    text = (
        "RAM 1903/3964MB (lfb 4x4MB) SWAP 0/1982MB (cached 0MB) IRAM 0/252kB(lfb 252kB) "
        "CPU [5%@1479,off,3%@1479] EMC_FREQ 0% GR3D_FREQ 99%@921 NVENC 716 PLL@41C "
        "GPU@42.5C POM_5V_IN 2532/2500\nRAM broken\nno\n"
    )
    recording = _read(text)
    assert _series(recording, "POM_5V_IN") == [2532]
    assert _series(recording, "POM_5V_IN average") == [2500]
    assert _series(recording, "GR3D_FREQ frequency", "0") == [921]
    assert _series(recording, "NVENC frequency") == [716]
    assert _series(recording, "temperature GPU", "0") == [42.5]
    assert _series(recording, "cpu.utilization") == [4]
    assert _series(recording, "CPU[1]") == []
    assert recording.clock.ordered_only
    assert _codes(recording)["rows-dropped"] == 1


def test_the_author_s_json_says_what_the_log_says():
    log, parsed = _corpus("tegrastats/tegrastats.log"), _corpus("tegrastats/energy_metrics.json")
    for theirs, own, device in (
        ("RAM", "ram_used", None), ("GR3D_FREQ", "gpu_usage", "0"), ("CPU[7]", "cpu[7]", None),
        ("VDD_GPU_SOC", "vdd_gpu_soc", "0"), ("temperature gpu", "temperature gpu", "0"),
        ("cpu.utilization", "cpu.utilization", None),
    ):  # fmt: skip
        assert _series(log, theirs, device) == _series(parsed, own, device)
        assert len(_series(log, theirs, device)) == 43
    assert log.clock == parsed.clock


def test_a_cut_list_is_read_up_to_the_cut():
    one = '{"timestamp": "2025-08-14T15:00:57", "gpu_usage": 43, "cpu": [2, 4]}'
    recording = _read(f"[{one}, {one[:-1]}")
    assert _series(recording, "gpu_usage", "0") == [43]
    assert _series(recording, "cpu.utilization") == [3]
    assert _codes(recording) == {"cut": 1}


# --- GPU-Z, CodeCarbon, power logs, own loggers --------------------------------------------


def test_gpu_z():
    """SOURCES.md: 12 header lines (11 restarts), a column twice, one gap of 24 h."""
    recording = _corpus("gpu-z/GPU-Z Sensor Log.txt.gz")
    assert _codes(recording) == {"log-restarted": 11}
    assert _series(recording, "UVD Clock", "0")[0] == 105
    assert _series(recording, "UVD Clock (2)", "0")[0] == 102
    assert _series(recording, "CPU Temperature")[0] == 35
    table = recording.table("counters")
    units = table.drop_duplicates("counter").set_index("counter")["unit"]
    assert (units["GPU Temperature"], units["Memory Used (Dedicated)"]) == ("C", "MiB")
    assert table["ts_ns"].diff().max() > 24 * H * 0.9
    assert recording.clock.epoch_ns == 1_584_378_785 * SECOND_NS  # 2020-03-16 17:13:05 as UTC


def test_gpu_z_short_line_and_utf_8():
    text = "Date , GPU Load [%] , GPU Temperature [°C] ,\n2020-03-16 17:13:05 , 7 , - ,\n2020-03\n"
    for data in (text.encode(), text.encode("latin-1")):
        recording = _read(data)
        assert _rows(recording) == [(0, "0", "GPU Load", "%", 7.0)]
        assert _codes(recording) == {"rows-dropped": 1, "missing-values": 1}


def test_codecarbon_rows_are_runs():
    recording = _corpus("jetson-codecarbon/emissions.csv")
    assert _series(recording, "duration") == [11.464183648997277]
    assert _series(recording, "cpu_power") == [23.944727272727278]
    assert "longitude" not in set(recording.table("counters")["counter"])
    assert _codes(recording) == {"one-sample-a-run": 1}


def test_milliwatts_under_watts_are_kept_and_told():
    """SOURCES.md: column gpu_power_w holds milliwatts (4939.00)."""
    recording = _corpus("jetson-codecarbon/gpu_log.csv")
    assert _series(recording, "gpu_power_w", "0")[:2] == [4939, 6472]
    table = recording.table("counters")
    assert set(table.loc[table["counter"] == "gpu_power_w", "unit"]) == {"W"}
    assert _codes(recording) == {"implausible-unit": 10, "device-unknown": 1}


def test_node_power():
    """SOURCES.md: 20.8 h; the first row is 2026-05-05T19:14:51,2492,2579,5071."""
    recording = _corpus("node-power/power_log.csv")
    assert _rows(recording)[:3] == [
        (0, None, "n1_watts", "W", 2492.0),
        (0, None, "n2_watts", "W", 2579.0),
        (0, None, "total_watts", "W", 5071.0),
    ]
    assert recording.span.dur_ns / H == pytest.approx(20.8, abs=0.05)
    assert recording.clock.epoch_ns == 1_778_008_491 * SECOND_NS
    assert recording.clock.uncertainty_ns == 14 * H


def test_own_loggers():
    text = (
        "time,cpu_percent,mem_used_gb,gpu0_util,gpu1_power_w,comment\n"
        "2026-01-03T15:36:53.5+01:00,50,3.5,90,100,warm, up\n"
        "2026-01-03T15:36:54.5+01:00,60.5,,91,1e999,x\n"
        "2026-01-03T15:36:55.5+01:00,70,3.5,92,102,y\n"
        "soon,1,1,1,1,z\n"
    )
    recording = _read(text)
    assert _rows(recording) == [
        (0, None, "cpu_percent", "%", 60.5),
        (0, None, "cpu.utilization", "%", 60.5),
        (0, "0", "gpu0_util", "%", 91.0),
        (SECOND_NS, None, "cpu_percent", "%", 70.0),
        (SECOND_NS, None, "cpu.utilization", "%", 70.0),
        (SECOND_NS, None, "mem_used_gb", "GB", 3.5),
        (SECOND_NS, "0", "gpu0_util", "%", 92.0),
        (SECOND_NS, "1", "gpu1_power_w", "W", 102.0),
    ]
    assert recording.clock.epoch_ns == 1_767_451_014_500_000_000  # 14:36:54.5 UTC
    assert recording.clock.uncertainty_ns == SECOND_NS
    assert _codes(recording) == {"rows-dropped": 1, "missing-values": 2, "time-unreadable": 1}


@pytest.mark.parametrize(
    ("stamps", "epoch_ns"),
    [
        (("1767451013", "1767451014", "1e+999999999"), 1_767_451_013_000_000_000),
        (("1767451013.25", "1767451014.25"), 1_767_451_013_250_000_000),
        (("1767451013250", "1767451014250"), 1_767_451_013_250_000_000),
        (("1767451013250000", "1767451014250000"), 1_767_451_013_250_000_000),
        (("1767451013250000000", "1767451014250000000"), 1_767_451_013_250_000_000),
        (("0.5", "1.5"), None),
    ],
)
def test_numbers_as_times(stamps, epoch_ns):
    rows = "".join(f"{stamp},{n},5\n" for stamp in stamps for n in "01")
    recording = _read(f"timestamp,gpu,power_w\n{rows}")
    assert _rows(recording, "ts_ns", "device") == [
        (0, "0"), (0, "1"), (SECOND_NS, "0"), (SECOND_NS, "1"),
    ]  # fmt: skip
    assert recording.clock.epoch_ns == epoch_ns


def test_a_training_log_is_no_metrics():
    for text in ("epoch,loss,accuracy\n1,2,3\n", "timestamp,step,loss\n2026-01-03T15:36:53,1,2\n"):
        with pytest.raises(LoadError):
            _read(text)


def test_times_nobody_can_read_leave_an_order():
    recording = _read("time,cpu_percent\nMonday,5\nTuesday,6\n")
    assert _series(recording, "cpu_percent") == [5, 6]
    assert recording.clock.ordered_only
    assert _codes(recording) == {"time-unreadable": 2}


# --- dstat, W&B ----------------------------------------------------------------------------


def test_dstat_row_by_eye():
    """The second row: usr 8.957, sys 0.991, idl 89.934, wai 0.008."""
    recording = _corpus("dstat/dstat_2.csv")
    assert _series(recording, "total cpu usage / usr")[1] == 8.957
    assert _series(recording, "cpu.utilization")[1] == pytest.approx(100 - 89.934 - 0.008)
    assert _series(recording, "memory usage / cach")[0] == 205011812352
    assert recording.table("counters")["device"].isna().all()
    assert recording.clock.epoch_ns == 1_434_452_802 * SECOND_NS  # 2015-06-16 11:06:42 as UTC
    assert recording.table("counters")["ts_ns"].unique()[1] == 5 * SECOND_NS


DSTAT = (
    '"Dstat 0.7.2 CSV output"\n"Host:","h",,,,"User:","u"\n'
    '"Cmdline:","dstat",,,,"Date:","31 Dec 2015 23:59:58 CET"\n\n'
    '"system","total cpu usage",,,"dsk/sda",\n"time","usr","idl","wai","read","writ"\n'
)


def test_dstat_passes_the_turn_of_the_year():
    rows = "31-12 23:59:59,1,90,2,5,6\n01-01 00:00:01,1,80,,5,6\n01-01 00:00:02,1\n"
    recording = _read(DSTAT + rows)
    assert _series(recording, "cpu.utilization") == [8, 20]
    assert sorted(set(recording.table("counters")["ts_ns"])) == [0, 2 * SECOND_NS]
    assert _series(recording, "dsk/sda / writ") == [6, 6]
    assert _codes(recording) == {"rows-dropped": 1, "missing-values": 1}


def test_dstat_without_a_date_has_an_order():
    recording = _read(DSTAT.replace('"Date:"', '"Day:"') + "31-12 23:59:59,1,90,2,5,6\n" * 2)
    assert recording.clock.ordered_only
    assert sorted(set(recording.table("counters")["ts_ns"])) == [0, SECOND_NS]


def test_wandb_events():
    lines = [
        {"system.gpu.1.gpu": 50, "system.gpu.1.temp": 40.5, "system.cpu.0.cpu_percent": 10,
         "system.cpu.1.cpu_percent": 30, "system.gpu.process.1.memoryAllocated": "NaN",
         "_timestamp": 1718783836.5, "_runtime": 2.5, "_wandb": True},
        {"system.gpu.1.gpu": None, "system.network.sent": 7, "_timestamp": 1718783838.5},
    ]  # fmt: skip
    text = "\n".join(json.dumps(line) for line in lines) + '\n{"system.gpu'
    recording = _read(text)
    assert _rows(recording) == [
        (0, "1", "system.gpu.gpu", "%", 50.0),
        (0, "1", "system.gpu.temp", "C", 40.5),
        (0, None, "system.cpu.0.cpu_percent", "%", 10.0),
        (0, None, "system.cpu.1.cpu_percent", "%", 30.0),
        (0, None, "cpu.utilization", "%", 20.0),
        (2 * SECOND_NS, None, "system.network.sent", "B", 7.0),
    ]
    assert recording.events == {"sample": 5}  # cpu.utilization is worked out, not in the file
    assert recording.clock.epoch_ns == 1_718_783_836_500_000_000
    assert _codes(recording) == {"rows-dropped": 1, "missing-values": 1}
