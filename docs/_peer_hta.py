"""Figures of HolisticTraceAnalysis for one trace, as JSON; run with a Python that has it."""

from __future__ import annotations

import json
import logging
import sys
import warnings


def main() -> None:
    """Print the figures of the trace and rank named on the command line."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    from hta.trace_analysis import TraceAnalysis  # noqa: PLC0415 - only there

    path, rank = sys.argv[1], int(sys.argv[2])
    analysis = TraceAnalysis(trace_files={rank: path}, trace_dir="")
    times = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    found = {
        name: float(times[f"{column}_pctg"]) / 100
        for name, column in (
            ("idle", "idle_time"),
            ("compute", "compute_time"),
            ("not compute, not idle", "non_compute_time"),
        )
    }
    overlap = analysis.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"]
    print(json.dumps({"": found | {"overlap": float(overlap) / 100}}))


if __name__ == "__main__":
    main()
