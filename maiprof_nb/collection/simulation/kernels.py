"""The kernels of the job by the names that PyTorch's builds give them, with their time."""

from __future__ import annotations

from maiprof_nb.collection.simulation.device import Device, Kernel

MULTIPLY = "AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >"
_SMALLEST_NS = 1_696  # a kernel that does nothing
_WHOLE, _TILE = 8, 16  # elements: halves a load takes at once, shortest side that is a matrix
_MISALIGNED = 0.35  # of the rate, where rows of a matrix do not begin at whole loads
_ARRAY = "std::array<char*, {n}ul>"


def _grid(threads: int, block: int, limit: int = 2_147_483_647) -> tuple[int, int, int]:
    return (max(1, min(limit, -(-threads // block))), 1, 1)


def _bandwidth_ns(device: Device, bytes_moved: int) -> int:
    return _SMALLEST_NS + int(bytes_moved / device.bytes_per_s * 1e9)


def gemm(device: Device, rows: int, columns: int, inner: int, layout: str, *, half: bool) -> Kernel:
    """Matrix product of ``rows x inner`` with ``inner x columns``; `layout` as cuBLAS says it."""
    flops = 2.0 * rows * columns * inner
    fits = all(size < _TILE or size % _WHOLE == 0 for size in (rows, columns, inner))
    element = 2 if half else 4
    moved = element * (rows * columns + rows * inner + inner * columns)
    rate = device.flops_fp16 if half else device.flops_fp32
    if half and not fits:
        rate *= _MISALIGNED
    dur = max(int(flops / rate * 1e9), _bandwidth_ns(device, moved))
    tiles = (max(1, -(-rows // 128)), max(1, -(-columns // 128)), 1)
    if layout == "nt":  # weight gradient: a small result, summed over splits of the rows
        tiles = (*tiles[:2], 27)
    if half and not fits:
        name = (
            "void cutlass::Kernel2<cutlass_80_wmma_tensorop_f16_s161616gemm_f16_128x128_32x3_"
            f"{layout}_align2>(cutlass_80_wmma_tensorop_f16_s161616gemm_f16_128x128_32x3_"
            f"{layout}_align2::Params)"
        )
        return Kernel(
            name, dur, tiles, (128, 1, 1), 168, 49_152, tensor_core=True, memory_bound=False
        )
    if half:
        name = f"ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_{layout}"
        return Kernel(
            name, dur, tiles, (128, 1, 1), 166, 81_920, tensor_core=True, memory_bound=False
        )
    name = f"ampere_sgemm_128x128_{layout}"
    registers = 122 if layout == "tn" else 146
    return Kernel(name, dur, tiles, (256, 1, 1), registers, 33_792, memory_bound=False)


def elementwise(
    device: Device, functor: str, elements: int, passes: float, *, width: int = 4
) -> Kernel:
    """A vectorised pointwise kernel that touches `passes` arrays of `elements` x `width` bytes."""
    array = _ARRAY.format(n=max(2, round(passes)))
    name = (
        f"void at::native::vectorized_elementwise_kernel<4, at::native::{functor}, {array} >"
        f"(int, at::native::{functor}, {array})"
    )
    dur = _bandwidth_ns(device, int(elements * width * passes))
    return Kernel(name, dur, _grid(elements // 4, 128), (128, 1, 1), 28)


def cast(device: Device, elements: int) -> Kernel:
    """Conversion between half and single precision."""
    name = (
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda("
        "at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}::operator()() "
        "const::{lambda(float)#1}, std::array<char*, 2ul>, 4, TrivialOffsetCalculator<1, "
        "unsigned int>, TrivialOffsetCalculator<1, unsigned int>, "
        "at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >"
    )
    return Kernel(
        name, _bandwidth_ns(device, elements * 6), _grid(elements // 4, 128), (128, 1, 1), 32
    )


def layer_norm(device: Device, rows: int, columns: int) -> Kernel:
    """Layer norm over the last axis, forward."""
    name = (
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>"
        "(int, float, float const*, float const*, float const*, float*, float*, float*)"
    )
    return Kernel(name, _bandwidth_ns(device, rows * columns * 8), (rows, 1, 1), (32, 4, 1), 40, 24)


def layer_norm_grad_input(device: Device, rows: int, columns: int) -> Kernel:
    """Layer norm, gradient of its input."""
    name = (
        "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized<float, "
        "float>(float const*, float const*, float const*, float const*, float const*, float*, int)"
    )
    return Kernel(
        name, _bandwidth_ns(device, rows * columns * 12), (rows, 1, 1), (128, 1, 1), 40, 16
    )


def layer_norm_grad_weight(device: Device, rows: int, columns: int) -> Kernel:
    """Layer norm, gradients of its weight and bias."""
    name = (
        "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float, float, "
        "32u, 32u, 256u, true, true>(long, long, float const*, float const*, float const*, "
        "float const*, float*, float*)"
    )
    grid = (-(-columns // 32), 24, 1)
    return Kernel(name, _bandwidth_ns(device, rows * columns * 8), grid, (32, 32, 1), 62, 4352)


def dropout(device: Device, elements: int) -> Kernel:
    """Dropout with its mask."""
    name = (
        "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, "
        "unsigned int, 1, 4, bool>(at::cuda::detail::TensorInfo<float const, unsigned int>, "
        "at::cuda::detail::TensorInfo<float, unsigned int>, at::cuda::detail::TensorInfo<bool, "
        "unsigned int>, unsigned int, float, at::PhiloxCudaState)"
    )
    return Kernel(
        name, _bandwidth_ns(device, elements * 9), _grid(elements, 256, 864), (256, 1, 1), 48
    )


def index_select(device: Device, rows: int, columns: int) -> Kernel:
    """Rows of an embedding table."""
    name = (
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, "
        "2, 2, -2, true>(at::cuda::detail::TensorInfo<float, unsigned int>, "
        "at::cuda::detail::TensorInfo<float const, unsigned int>, at::cuda::detail::TensorInfo<"
        "long const, unsigned int>, int, int, unsigned int, unsigned int, long)"
    )
    dur = _bandwidth_ns(device, rows * columns * 8)
    return Kernel(name, dur, _grid(rows * columns, 128, 864), (128, 1, 1), 32)


def embedding_backward(device: Device, rows: int, columns: int) -> Kernel:
    """Gradient of an embedding table: sorted rows summed."""
    name = (
        "void at::native::(anonymous namespace)::compute_grad_weight<float, long>(long const*, "
        "float const*, long const*, long, long, long const*, long const*, long const*, "
        "float*, long)"
    )
    return Kernel(name, _bandwidth_ns(device, rows * columns * 12), _grid(rows, 64), (64, 1, 1), 32)


def radix_sort(device: Device, rows: int) -> Kernel:
    """Sort of the ids of one embedding table."""
    name = (
        "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<at_cuda_detail::cub::"
        "DeviceRadixSortPolicy<long, long, unsigned long long>::Policy900, false, long, long, "
        "unsigned long long, int, int, at_cuda_detail::cub::detail::identity_decomposer_t>"
    )
    return Kernel(
        name, _bandwidth_ns(device, rows * 64), _grid(rows, 4608), (384, 1, 1), 56, 38_400
    )


def concatenate(device: Device, elements: int) -> Kernel:
    """Columns of several tensors put together."""
    name = (
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<at::native::(anonymous "
        "namespace)::OpaqueType<4u>, unsigned int, 2, 128, 1>(at::native::(anonymous namespace)::"
        "OpaqueType<4u>*, at::native::(anonymous namespace)::CatArrInputTensorMetadata<at::native::"
        "(anonymous namespace)::OpaqueType<4u>, unsigned int, 128, 1>, at::native::(anonymous "
        "namespace)::TensorSizeStride<unsigned int, 4u>, int, unsigned int)"
    )
    return Kernel(name, _bandwidth_ns(device, elements * 8), (216, 13, 1), (512, 1, 1), 32)


def reduce(device: Device, functor: str, elements: int, *, width: int = 4) -> Kernel:
    """A reduction, such as the sum for a bias or the mean of a loss."""
    name = (
        "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::"
        f"{functor}, unsigned int, float, 4, 4> >(at::native::ReduceOp<float, at::native::"
        f"{functor}, unsigned int, float, 4, 4>)"
    )
    grid = (4, 108, 1) if elements > 100_000 else (1, 1, 1)
    return Kernel(name, _bandwidth_ns(device, elements * width), grid, (32, 16, 1), 40, 4096)


def multi_tensor(device: Device, functor: str, elements: int, passes: float) -> Kernel:
    """One kernel over the chunks of many tensors, as the foreach operators launch it."""
    lists = f"TensorListMetadata<{max(1, round(passes))}>"
    space = "at::native::(anonymous namespace)"
    name = (
        f"void {space}::multi_tensor_apply_kernel<{space}::{lists}, {space}::{functor}, float>"
        f"({space}::{lists}, {space}::{functor}, float)"
    )
    dur = _bandwidth_ns(device, int(elements * 4 * passes))
    return Kernel(name, dur, _grid(elements, 65_536), (512, 1, 1), 44)
