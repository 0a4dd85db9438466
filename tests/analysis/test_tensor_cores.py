"""Which kernels use tensor cores, by names taken from traces of real builds."""

from __future__ import annotations

import pytest

import maiprof_nb
from maiprof_nb.analysis.tensor_cores import NO, UNDECIDED, YES, tensor_cores, verdict_of
from tests import tiny_traces as tiny


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("volta_fp16_s884cudnn_fp16_256x128_ldg8_relu_exp_small_nhwc_tn_v1", YES),
        ("volta_h884gemm_64x128_ldg8_nn", YES),
        ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", YES),
        ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn", YES),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x4_nn_align1>", YES),
        ("void cutlass::Kernel2<cutlass_75_wmma_tensorop_bf16_s161616gemm_bf16_32x32_32x1>", YES),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize32x32x64_stage4_tensor16x8x8", YES),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", YES),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma", NO),
        ("nvjet_sm103_tst_32x64_64x16_4x1_v_bz_splitK_TNN", YES),
        ("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64>>", YES),
        ("fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP64MultiCtasKv", YES),
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm70(Params)", NO),
        ("bmm_Bfloat16_Bfloat16Bfloat16_Fp32_t128x8x128u2_s6_et128x8_16dp256b_sm100f", YES),
        ("attn_fwd", YES),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x96x128_MI16x16x1_SN_LDSB1", YES),
        ("Cijk_Ailk_Bljk_SB_MT64x64x16_SE_1LDSB0_TT4_4_WG16_16_1", NO),
        ("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x256x32_wt32x32x8", YES),
        ("void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16>", YES),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>", NO),
        ("volta_sgemm_128x32_nt", NO),
        ("ampere_sgemm_32x32_sliced1x4_tn", NO),
        ("volta_scudnn_128x64_relu_interior_nn_v1", NO),
        ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16>", NO),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>", NO),
        ("triton_poi_fused_addmm_gelu_view_15", NO),
        ("triton_tem_fused_mm_3", UNDECIDED),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", NO),
        ("void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float>", NO),
        ("my_kernel", UNDECIDED),
    ],
)
def test_names(name, verdict):
    assert verdict_of(name)[0] == verdict


def test_shares():
    """100 us of kernels: 30 tensor-core and 20 plain inside mm, 10 unnamed, 40 elementwise."""
    mm = {"External id": 1}
    found = tensor_cores(
        tiny.session(
            tiny.operator("aten::linear", 1000, 50, **{"External id": 9}),
            tiny.operator("aten::mm", 1010, 30, **mm),
            tiny.kernel(1100, 30, name="ampere_fp16_s16816gemm_fp16_64x64_nn", **mm),
            tiny.kernel(1130, 20, name="ampere_sgemm_64x64_nn", **mm),
            tiny.kernel(1150, 10, name="my_kernel"),
            tiny.kernel(1160, 40, name="void at::native::elementwise_kernel<1>"),
            tiny.memcpy(1200, 500),
        )
    )
    (row,) = found.to_dict("records")
    assert row["kernel_ns"] == 100_000
    assert row["tensor_core_share"] == 0.3
    assert row["undecided_share"] == 0.1
    assert row["eligible_ns"] == 50_000
    assert row["eligible_share"] == 0.6


def test_kernels_belong_to_the_operator_round_their_launch():
    """No external ids, as ROCm writes it."""
    found = tensor_cores(
        tiny.session(
            tiny.operator("aten::mm", 1000, 30),
            tiny.launch(5, 1010),
            tiny.kernel(1100, 30, name="volta_sgemm_128x32_nn", correlation=5),
        )
    )
    assert found["eligible_ns"].tolist() == [30_000]


def test_without_matrix_work_there_is_no_share():
    found = tensor_cores(tiny.session(tiny.kernel(1000, 5)))
    assert found["eligible_share"].isna().all()


def test_control_and_test(corpus):
    """A pair known for it: the A100 control uses TF32 tensor cores, the V100 test none.

    By name, 81 % of the time of kernels called ...gemm... in the control are s1688 kernels
    (66 811 of 82 692 us, counted with a script of its own); fbgemm_gpu kernels among them are
    no matrix products, so the share of eligible operators' time is near, not equal.
    """
    control = tensor_cores(maiprof_nb.load(corpus / "kineto/hta-trace-diff/control.json.gz"))
    assert control["tensor_core_ns"].tolist() == pytest.approx([66_811_000], rel=1e-3)
    assert control["eligible_share"].tolist() == pytest.approx([0.81], abs=0.015)
    test = tensor_cores(maiprof_nb.load(corpus / "kineto/hta-trace-diff/test.json.gz"))
    assert test["tensor_core_share"].tolist() == [0]
