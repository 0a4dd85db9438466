"""How much of the device's work runs on tensor cores, as far as kernels' names tell."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

from maiprof_nb.analysis._remember import remembered
from maiprof_nb.analysis._work_owners import work_owners
from maiprof_nb.analysis.device_activity import require_activity
from maiprof_nb.analysis.steps import figure_window
from maiprof_nb.session import Session

YES, NO, UNDECIDED = "yes", "no", "name does not say"
VERDICTS = (YES, NO, UNDECIDED)

# (verdict, family, pattern); the first that matches counts. Matrix instructions are named by
# their tile (m16n8k16 = 16816) with a letter for what they add up in.
RULES: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (verdict, family, re.compile(pattern))
    for verdict, family, pattern in (
        (NO, "plain arithmetic said so", r"_ffma|simt|Simt"),
        (
            YES,
            "instruction tile (Volta to Ada)",
            r"(?:^|[^A-Za-z0-9])(?:wmma_)?[hsicdb](?:884|1688|8816|8832|16816|16832|16864|161616)"
            r"(?![0-9])|m(?:16n8k|16n16k|8n8k)\d+|[hid]mma(?![a-z])",
        ),
        (YES, "tensor-core tile of xmma", r"tensor\d+x\d+x\d+|xmma_"),
        (YES, "CUTLASS tensor operation", r"tensorop|TensorOp|wmma"),
        (
            YES,
            "Hopper and Blackwell instructions",
            r"wgmma|GMMA|Gmma|gmma|tcgen05|umma|UMMA|MainloopSm(?:90|1\d\d)|enable_3x_kernel_for_sm"
            r"|nvjet_",
        ),
        (YES, "TensorRT-LLM matrix product", r"^(?:bmm|gemm)_\w*_sm(?:90|1\d\d)"),
        (NO, "attention before tensor cores", r"fmha_cutlass[FB]_f32_\w*_sm(?:50|70|75)"),
        (
            YES,
            "fused attention",
            r"flash_(?:fwd|bwd|attn)|Flash_(?:fwd|bwd)|flash::|FlashAttn|fmha|_sdpa_"
            r"|^(?:attn_fwd|attn_bwd|bwd_kernel_(?:dk_dv|dq|fuse))",
        ),
        (YES, "quantised matrix product", r"marlin|machete|deep_gemm|tinygemm"),
        (YES, "AMD matrix cores", r"mfma|MFMA|[Xx]dl|gtcx|^Cijk_\w*_MI\d+x\d+x\d+"),
        (NO, "AMD matrix product on vector units", r"^Cijk_(?!\w*_MI\d)"),
        (
            NO,
            "matrix product on plain cores",
            r"(?:^|[_ ])(?:\w*[a-z])?[sdczh]gemm(?:Ex)?(?:_|$)|scudnn|implicit_convolve|gemmSN_"
            r"|gemmk1_|gemv|dot_kernel|splitKreduce|winograd|Winograd",
        ),
        (NO, "early cuDNN", r"[dw]grad(?:2d)?_alg\d|convolve_common_engine|fft2d|fft1d"),
        (NO, "collective", r"nccl|rccl|msccl|all_?reduce|nvshmem"),
        (
            NO,
            "point by point, reduction or copy",
            r"(?:^|[^A-Za-z])(?:at|cub|thrust|rocprim|hipcub|fbgemm_gpu)::|elementwise"
            r"|multi_tensor_apply|^triton_(?:poi|per|red|for)_|[Ss]oftmax|[Nn]orm|reduce_kernel"
            r"|bn_[fb]w|batch_?norm|embedding|[Pp]ool|dropout|[Tt]ranspose|nchwToNhwc|nhwcToNchw"
            r"|nchwAddPadding|nhwcAddPadding|[Cc]opy|[Ff]ill|[Mm]emset|permute|radix|scatter|gather"
            r"|topk|topK|rope|rotary|bounds_check|computeOffsets|compute_gemm_pointers|quantize|quant_kernel"
            r"|epilogue::impl|finalizeKernel|linearize_index|reshape_and_cache|reduce_1Block",
        ),
    )
)

# Operators autocast runs in its lower precision, with what they dispatch to.
ELIGIBLE = frozenset(
    {
        "aten::addbmm",
        "aten::addmm",
        "aten::addmm_",
        "aten::addmv",
        "aten::addr",
        "aten::baddbmm",
        "aten::bmm",
        "aten::chain_matmul",
        "aten::einsum",
        "aten::linalg_multi_dot",
        "aten::linear",
        "aten::matmul",
        "aten::mm",
        "aten::mv",
        "aten::prelu",
        "aten::conv1d",
        "aten::conv2d",
        "aten::conv3d",
        "aten::conv_tbc",
        "aten::conv_transpose1d",
        "aten::conv_transpose2d",
        "aten::conv_transpose3d",
        "aten::convolution",
        "aten::_convolution",
        "aten::convolution_overrideable",
        "aten::cudnn_convolution",
        "aten::cudnn_convolution_transpose",
        "aten::cudnn_convolution_add_relu",
        "aten::cudnn_convolution_relu",
        "aten::miopen_convolution",
        "aten::miopen_depthwise_convolution",
        "aten::convolution_backward",
        "aten::cudnn_convolution_backward",
        "aten::cudnn_convolution_backward_input",
        "aten::cudnn_convolution_backward_weight",
        "aten::miopen_convolution_backward",
        "aten::gru_cell",
        "aten::lstm_cell",
        "aten::rnn_tanh_cell",
        "aten::rnn_relu_cell",
        "aten::_thnn_fused_lstm_cell",
        "aten::_thnn_fused_gru_cell",
        "aten::_cudnn_rnn",
        "aten::_cudnn_rnn_backward",
        "aten::scaled_dot_product_attention",
        "aten::_scaled_dot_product_flash_attention",
        "aten::_scaled_dot_product_efficient_attention",
        "aten::_scaled_dot_product_cudnn_attention",
        "aten::_scaled_dot_product_flash_attention_backward",
        "aten::_scaled_dot_product_efficient_attention_backward",
        "aten::_scaled_dot_product_cudnn_attention_backward",
        "aten::_flash_attention_forward",
        "aten::_flash_attention_backward",
        "aten::_efficient_attention_forward",
        "aten::_efficient_attention_backward",
        "aten::_scaled_mm",
        "aten::_addmm_activation",
    }
)


def verdict_of(name: str) -> tuple[str, str]:
    """Whether a kernel runs on tensor cores by its name, and the family that says so."""
    return next(
        ((verdict, family) for verdict, family, rule in RULES if rule.search(name)),
        (UNDECIDED, ""),
    )


def verdicts(names: pd.Series) -> pd.Categorical:
    """The verdict of each of many names (a column of categories)."""
    categories: Iterable[str] = names.cat.categories
    codes = [VERDICTS.index(verdict_of(str(name))[0]) for name in categories]
    found = np.array([*codes, VERDICTS.index(UNDECIDED)], dtype=np.int64)
    return pd.Categorical.from_codes(found[names.cat.codes.to_numpy()], categories=list(VERDICTS))


@remembered
def kernel_work(session: Session) -> pd.DataFrame:
    """Kernels (no copies or memsets) in the window of the figures with their verdict.

    Returns
    -------
    DataFrame
        One row a kernel: ``row`` (in the table `kernels`), ``recording``, ``rank``, ``device``,
        ``name``, ``kind``, ``inside_ns`` (its time inside the window), ``tensor_core``
        (verdict), ``operator`` (row of the outermost operator of autocast's list that launched
        it, or -1).
    """
    window = figure_window(session).window
    work = session.table("kernels")
    start = work["ts_ns"].clip(window.start_ns, window.end_ns)
    end = (work["ts_ns"] + work["dur_ns"]).clip(window.start_ns, window.end_ns)
    owners = work_owners(session)
    wanted = session.table("operators")["name"].isin(ELIGIBLE).to_numpy(bool)
    found = work[["recording", "rank", "device", "name", "kind"]].assign(
        row=np.arange(len(work)),
        inside_ns=(end - start).to_numpy(np.int64),
        tensor_core=verdicts(work["name"]),
        operator=owners.of_work(owners.outermost(wanted)),
    )
    kernels = found["kind"].isin(["compute", "communication"])
    return found[kernels & (found["inside_ns"] > 0)].reset_index(drop=True)


def tensor_cores(session: Session) -> pd.DataFrame:
    """How much kernel time each device spends in kernels that use tensor cores.

    Returns
    -------
    DataFrame
        One row a device: ``recording``, ``rank``, ``device``, ``kernel_ns`` (time of all
        kernels in the window of the figures, also of collectives), ``tensor_core_ns``,
        ``undecided_ns`` (kernels whose name decides nothing), ``tensor_core_share`` and
        ``undecided_share`` of ``kernel_ns``, ``eligible_ns`` (kernels launched by operators
        that autocast would run in lower precision), ``eligible_tensor_core_ns``,
        ``eligible_undecided_ns``, ``eligible_share`` (tensor-core part of ``eligible_ns``;
        missing without any).

    Raises
    ------
    NotAnswerableError
        If no device work was recorded.

    Notes
    -----
    By name only: a kernel that uses tensor cores may keep them busy for a small part of its
    time. Measured activity is `measured_tensor_activity`. Kernels that run side by side
    count each.
    """
    require_activity(session)
    work = kernel_work(session)
    yes = (work["tensor_core"] == YES).to_numpy()
    undecided = (work["tensor_core"] == UNDECIDED).to_numpy()
    eligible = (work["operator"] >= 0).to_numpy()
    time = work["inside_ns"].to_numpy(np.int64)
    parts = {
        "kernel_ns": time,
        "tensor_core_ns": _where(yes, time),
        "undecided_ns": _where(undecided, time),
        "eligible_ns": _where(eligible, time),
        "eligible_tensor_core_ns": _where(eligible & yes, time),
        "eligible_undecided_ns": _where(eligible & undecided, time),
    }
    keys = ["recording", "rank", "device"]
    found = work[keys].assign(**parts).groupby(keys, dropna=False).sum().reset_index()
    total = found["kernel_ns"].where(found["kernel_ns"] > 0)
    matrix = found["eligible_ns"].where(found["eligible_ns"] > 0)
    return found.assign(
        tensor_core_share=(found["tensor_core_ns"] / total).astype("float64"),
        undecided_share=(found["undecided_ns"] / total).astype("float64"),
        eligible_share=(found["eligible_tensor_core_ns"] / matrix).astype("float64"),
    )


def _where(mask: npt.NDArray[np.bool_], values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.where(mask, values, 0)
