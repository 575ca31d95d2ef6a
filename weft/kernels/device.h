// Factories of the devices. A device combines the memory and streams of its folder in tensor/ with
// the operations of its folder here.
#pragma once

#include <memory>

#include "weft/kernels/gpu_report.h"
#include "weft/tensor/device.h"

namespace weft::kernels {

// `threads`: compute threads for each compute stream.
std::unique_ptr<tensor::Device> make_cpu_device(int threads = 1);

// Dry device: no memory and no arithmetic. Allocations are counted as on the CPU; tensors may have
// any size and hold no values. Its routers choose by `routing` (cpu/moe/even_choice.h).
enum class DryRouting { Even, Lopsided };
std::unique_ptr<tensor::Device> make_dry_device(DryRouting routing = DryRouting::Even);
// Dry device with the workspace of a GPU's operations, as far as it is known without a GPU.
std::unique_ptr<tensor::Device> make_dry_gpu(tensor::Deterministic deterministic,
                                             DryRouting routing = DryRouting::Even);

// GPU number `local_rank` modulo the number of GPUs that the process sees. Throws SystemError if
// this build has no CUDA device, without libraries or driver, or without a usable GPU.
std::unique_ptr<tensor::Device> make_cuda_device(
    int local_rank = 0,
    tensor::Deterministic deterministic = tensor::Deterministic::Yes);

// GPUs of this machine, or the reason why it has none. Does not throw.
GpuReport gpu_report();

}  // namespace weft::kernels
