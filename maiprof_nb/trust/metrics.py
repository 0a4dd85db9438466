"""Samples that are missing, and zeros that do not mean idle."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from maiprof_nb import units
from maiprof_nb.recording import Recording
from maiprof_nb.session import Session
from maiprof_nb.trust.rule import Result, failed, not_applicable, passed, rule

_SERIES = ["device", "counter"]
_MISSING_FACTOR = 5
_ENOUGH = 5
_BUSY_SHARE = 0.05
_UTILISATION = re.compile(
    r"^(?:utilization\.gpu|sm|GPUTL|DCGM_FI_DEV_GPU_UTIL|Utilization / GPU|gfx_activity"
    r"|GPU use|GPU Load)$",
    re.IGNORECASE,
)
_UTILISATION_IN_NOTE = re.compile(
    r"\b(?:utilization\.gpu|sm|GPUTL|DCGM_FI_DEV_GPU_UTIL|GRACT|gfx_activity)\b"
)
_ENGINE = re.compile(r"^(?:GRACT|SMACT|DCGM_FI_PROF_(?:GR_ENGINE|SM)_ACTIVE)$")


@rule(
    "metric-gaps",
    of="metrics",
    title="samples are missing",
    remedy="Sample with less load on the host, or believe only windows without the holes",
    reduces=("metrics",),
)
def metric_gaps(recording: Recording) -> Result:
    """A series pauses for more than five times its usual interval.

    The sampler was held up or stopped, and nothing is known of the time between.
    """
    if recording.clock.ordered_only:
        return not_applicable("the samples have no times")
    samples = recording.table("counters")
    samples = samples[samples["value"].notna()]
    # sorted, so that a difference within a series is an interval
    ordered = samples.assign(series=_series(samples)).sort_values(["series", "ts_ns"])
    series = ordered["series"].to_numpy()
    wait = np.diff(ordered["ts_ns"].to_numpy(np.int64))
    within = (np.diff(series) == 0) & (wait > 0)
    waits = pd.DataFrame({"series": series[1:][within], "wait": wait[within]})
    by = waits.groupby("series")["wait"]
    usual = by.transform("median")
    judgeable = (by.transform("size") >= _ENOUGH).to_numpy()
    if not judgeable.any():
        return not_applicable("there are too few samples to tell their interval")
    long = waits[judgeable & (waits["wait"] > _MISSING_FACTOR * usual).to_numpy()]
    if long.empty:
        return passed()
    lost = (long["wait"] - usual[long.index]).groupby(long["series"]).sum()
    worst = lost.idxmax()
    spans = waits.groupby("series")["wait"].sum()
    share = float(lost[worst] / spans[worst])
    pauses = int(long.groupby("series").size().max())
    times = "once" if pauses == 1 else f"{units.count(pauses)} times"
    return failed(
        f"The sampling pauses {times} for more than "
        f"{_MISSING_FACTOR} times its interval of {units.duration(float(usual[long.index[0]]))}, "
        f"at most for {units.duration(int(long['wait'].max()))}; nothing is known of "
        f"{units.percent(share)} of the time.",
        pauses,
        share,
    )


def _series(samples: pd.DataFrame) -> pd.Series:
    return samples.groupby(_SERIES, observed=True, dropna=False).ngroup()


@rule(
    "utilisation-unmeasured",
    of="session",
    title="utilisation was not measured, or reads zero although the device worked",
    remedy="On MIG instances sample DCGM's GR_ENGINE_ACTIVE and SM_ACTIVE "
    "(dcgmi dmon -e 1001,1002) instead of utilisation",
    reduces=("metrics",),
)
def utilisation_unmeasured(session: Session) -> Result:
    """The utilisation of a device is n/a throughout, or 0 although it worked.

    A trace or another counter shows that it worked while every sample says 0. MIG instances are
    like that: it is no idle GPU.
    """
    metrics = [recording for recording in session.recordings if recording.kind == "metrics"]
    if not metrics:
        return not_applicable("no metrics are loaded")
    found = [text for recording in metrics if (text := _unmeasured(recording, _busy(session)))]
    if not found:
        return passed()
    return failed(found[0], len(found), len(found) / len(metrics))


def _unmeasured(recording: Recording, busy: bool) -> str:
    samples = recording.table("counters")
    names = samples["counter"].astype("str")
    utilisation = samples[names.str.contains(_UTILISATION).to_numpy()]
    if utilisation.empty:
        noted = any(
            note.code in {"missing-values", "blank-values"}
            and _UTILISATION_IN_NOTE.search(note.text)
            for note in recording.notes
        )
        engine = names.str.contains(_ENGINE).any()
        return (
            "Utilisation is n/a in every sample, as on MIG instances and for single processes: "
            "this is no idle GPU."
            if noted and not engine
            else ""
        )
    engine = samples[names.str.contains(_ENGINE).to_numpy()]
    for device, rows in utilisation.groupby("device", observed=True, dropna=False):
        mine = engine[engine["device"].astype("str") == str(device)]
        works = busy or (len(mine) and mine["value"].max() > _BUSY_SHARE)
        if len(rows) >= _ENOUGH and rows["value"].max() == 0 and works:
            return (
                f"Utilisation of device {device} reads 0 in all {units.count(len(rows))} samples "
                "although the device worked; this is not an idle GPU."
            )
    return ""


def _busy(session: Session) -> bool:
    """True when the traces show work on a device for more than a twentieth of their time."""
    for recording in session.recordings:
        if recording.kind != "trace":
            continue
        lengths = recording.table("kernels")["dur_ns"]
        if lengths.sum() > _BUSY_SHARE * max(recording.span.dur_ns, 1):
            return True
    return False
