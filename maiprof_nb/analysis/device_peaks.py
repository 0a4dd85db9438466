"""What devices can do at most, from their makers' data sheets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# Sheets, named so that each number can be looked up again.
_V100 = "NVIDIA V100 Tensor Core GPU data sheet (Jan 2020)"
_A100 = "NVIDIA A100 Tensor Core GPU data sheet (June 2021)"
_H100 = "NVIDIA H100 Tensor Core GPU data sheet; dense = half of what it gives with sparsity"
_H200 = "NVIDIA H200 Tensor Core GPU data sheet; dense = half of what it gives with sparsity"
_B200 = "NVIDIA Blackwell data sheet, HGX B200, one GPU; dense = half of the sparse figure"
_TURING = "NVIDIA Turing GPU architecture white paper, appendix A, RTX 2080 Ti reference clocks"
_ADA = "NVIDIA Ada GPU architecture white paper, appendix A, RTX 4090, FP32 accumulate"
_L40S = "NVIDIA L40S data sheet, figures without sparsity"
_MI200 = "AMD Instinct MI200 series data sheet; half a card, as each of its two dies is a device"
_MI210 = "AMD Instinct MI210 data sheet"
_MI300X = "AMD Instinct MI300X data sheet"
_MI325X = "AMD Instinct MI325X data sheet"
_MI300A = "MI300X's figures for 228 of its 304 compute units (AMD CDNA 3), at the same clock"
_MI350X = "MI355X's figures at 2200 instead of 2400 MHz (AMD at Hot Chips 2025)"
_SIMULATED = "the invented card of sample_traces, which its own kernels do not reach"
_MI355X = "AMD Instinct MI355X data sheet"


@dataclass(frozen=True, slots=True)
class Peaks:
    """Peak rates of one kind of device, dense (no structured sparsity).

    Parameters
    ----------
    device : str
        The kind.
    tflops : Mapping of str to float
        10^12 operations a second by arithmetic: ``fp64``, ``fp32`` (without tensor cores),
        ``tf32``, ``fp16``, ``bf16``, ``fp8``, ``int8``; missing = the device has no such unit.
    bandwidth_gbs : float
        Device memory, 10^9 bytes a second.
    source : str
        Where the numbers stand.
    """

    device: str
    tflops: Mapping[str, float]
    bandwidth_gbs: float
    source: str


_HOPPER_SXM = {
    "fp64": 34, "fp32": 67, "tf32": 494.5, "fp16": 989.5, "bf16": 989.5, "fp8": 1979, "int8": 1979,
}  # fmt: skip
_AMPERE = {"fp64": 9.7, "fp32": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "int8": 624}
_CDNA3 = {
    "fp64": 81.7, "fp32": 163.4, "tf32": 653.7, "fp16": 1307.4, "bf16": 1307.4, "fp8": 2614.9,
    "int8": 2614.9,
}  # fmt: skip

# Name of the device in the trace, least memory (GB of 10^9) where names do not tell variants
# apart, and the peaks. The first that fits counts.
_DEVICES: tuple[tuple[str, float, Peaks], ...] = (
    (r"^Simulated GPU 80GB$", 0, Peaks("simulated GPU", {"fp32": 19.5, "fp16": 312}, 2039,
        _SIMULATED)),
    (r"V100S-PCI", 0, Peaks("V100S PCIe", {"fp64": 8.2, "fp32": 16.4, "fp16": 130}, 1134, _V100)),
    (r"V100-PCI", 0, Peaks("V100 PCIe", {"fp64": 7, "fp32": 14, "fp16": 112}, 900, _V100)),
    (
        r"V100-(?:SXM[23]|DGXS)",
        0,
        Peaks("V100 SXM2", {"fp64": 7.8, "fp32": 15.7, "fp16": 125}, 900, _V100),
    ),
    (r"A100 80GB PCI|A100-PCI\w*-80", 0, Peaks("A100 80GB PCIe", _AMPERE, 1935, _A100)),
    (r"\bA100\b", 70, Peaks("A100 80GB SXM", _AMPERE, 2039, _A100)),
    (r"\bA100\b", 0, Peaks("A100 40GB", _AMPERE, 1555, _A100)),
    (
        r"H100 (?:80GB )?PCI",
        0,
        Peaks(
            "H100 PCIe",
            {"fp64": 26, "fp32": 51, "tf32": 378, "fp16": 756, "bf16": 756, "fp8": 1513,
             "int8": 1513},
            2000,
            _H100,
        ),
    ),
    (r"H100 80GB HBM3|H100[ -]SXM", 0, Peaks("H100 SXM", _HOPPER_SXM, 3350, _H100)),
    (r"\bH200\b(?! NVL)", 0, Peaks("H200 SXM", _HOPPER_SXM, 4800, _H200)),
    (
        r"\bB200\b",
        0,
        Peaks(
            "B200",
            {"fp64": 37, "fp32": 75, "tf32": 1100, "fp16": 2250, "bf16": 2250, "fp8": 4500,
             "int8": 4500},
            7700,
            _B200,
        ),
    ),
    (r"MI250X", 0, Peaks("MI250X, one die",
        {"fp64": 23.95, "fp32": 47.85, "fp16": 191.5, "bf16": 191.5, "int8": 191.5},
        1638.4, _MI200)),
    (r"MI250\b", 0, Peaks("MI250, one die",
        {"fp64": 22.65, "fp32": 45.25, "fp16": 181.05, "bf16": 181.05, "int8": 181.05},
        1638.4, _MI200)),
    (r"MI210\b", 0, Peaks("MI210",
        {"fp64": 22.6, "fp32": 45.3, "fp16": 181, "bf16": 181, "int8": 181}, 1638.4, _MI210)),
    (r"MI300A", 0, Peaks("MI300A",
        {"fp64": 61.3, "fp32": 122.6, "tf32": 490.3, "fp16": 980.6, "bf16": 980.6, "fp8": 1961.2,
         "int8": 1961.2}, 5300, _MI300A)),
    (r"MI300X", 0, Peaks("MI300X", _CDNA3, 5300, _MI300X)),
    (r"MI325X", 0, Peaks("MI325X", _CDNA3, 6000, _MI325X)),
    (r"MI350X", 0, Peaks("MI350X",
        {"fp64": 72.1, "fp32": 144.2, "fp16": 2306.9, "bf16": 2306.9, "fp8": 4613.8,
         "int8": 4613.8}, 8000, _MI350X)),
    (r"MI355X", 0, Peaks("MI355X",
        {"fp64": 78.6, "fp32": 157.3, "fp16": 2516.6, "bf16": 2516.6, "fp8": 5033.2,
         "int8": 5033.2}, 8000, _MI355X)),
    (r"RTX 2080 Ti", 0, Peaks("RTX 2080 Ti", {"fp32": 13.4, "fp16": 53.8, "int8": 215.2},
        616, _TURING)),
    (r"RTX 4090(?! D| Laptop)", 0, Peaks("RTX 4090",
        {"fp32": 82.6, "tf32": 82.6, "fp16": 165.2, "bf16": 165.2, "fp8": 330.3, "int8": 660.6},
        1008, _ADA)),
    (r"\bL40S\b", 0, Peaks("L40S",
        {"fp32": 91.6, "tf32": 183, "fp16": 362.05, "bf16": 362.05, "fp8": 733, "int8": 733},
        864, _L40S)),
)  # fmt: skip

# First devices with tensor cores by NVIDIA's compute capability; by name for AMD's matrix cores.
_FIRST_TENSOR_CORES = 7
_AMD_MATRIX_CORES = re.compile(r"\bMI(?:[12]\d\d|3\d\d)")


def known_peaks() -> tuple[Peaks, ...]:
    """Every kind of device with known peaks."""
    return tuple(peaks for _, _, peaks in _DEVICES)


def peaks_of(name: str, memory_bytes: int | None = None) -> Peaks | None:
    """Peaks of a device by its name in a trace; None where they are not known.

    Parameters
    ----------
    name : str
        As ``deviceProperties`` has it, e.g. ``NVIDIA A100-SXM4-80GB``.
    memory_bytes : int, optional
        ``totalGlobalMem``, which tells variants of one name apart.
    """
    size = (memory_bytes or 0) / 1e9
    fitting = (p for pattern, least, p in _DEVICES if size >= least and re.search(pattern, name))
    return next(fitting, None)


def has_tensor_cores(name: str, compute_major: int | None) -> bool | None:
    """Whether a device has tensor (or matrix) cores; None where nothing tells."""
    if _AMD_MATRIX_CORES.search(name):
        return True
    if re.search(r"\bAMD\b|Radeon", name) or compute_major is None:
        return None
    if re.search(r"GTX 16\d\d", name):  # Turing without tensor cores
        return False
    return compute_major >= _FIRST_TENSOR_CORES
