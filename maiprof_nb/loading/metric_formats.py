"""The dialects of metrics logs, each a module with NAME, sniff and read."""

from __future__ import annotations

from maiprof_nb.loading import (
    amd_smi,
    codecarbon,
    dcgm_exporter,
    dcgm_long,
    dcgmi_dmon,
    dstat,
    gpu_z,
    parquet,
    prometheus,
    rocm_smi,
    smi_dmon,
    smi_pmon,
    smi_processes,
    smi_query,
    smi_report,
    tegrastats,
    tegrastats_json,
    wandb_events,
    wide_csv,
)

METRICS = (
    smi_query,
    smi_processes,
    smi_dmon,
    smi_pmon,
    smi_report,
    dcgmi_dmon,
    dcgm_exporter,
    dcgm_long,
    prometheus,
    amd_smi,
    rocm_smi,
    tegrastats,
    tegrastats_json,
    gpu_z,
    dstat,
    codecarbon,
    wandb_events,
    parquet,
    wide_csv,
)
