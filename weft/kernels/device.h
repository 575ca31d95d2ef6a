// The devices this program knows: each is made of the memory and streams of its folder in tensor/
// and the operations of its folder here.
#pragma once

#include <memory>

#include "weft/kernels/gpu_report.h"
#include "weft/tensor/device.h"

namespace weft::kernels {

// `threads` compute threads for each stream that computes.
std::unique_ptr<tensor::Device> make_cpu_device(int threads = 1);

// A device without memory or arithmetic: everything is taken and counted as on the CPU, tensors may
// be of any size and hold nothing. Its routers choose as they are told to (cpu/even_choice.h).
enum class DryRouting { Even, Lopsided };
std::unique_ptr<tensor::Device> make_dry_device(DryRouting routing = DryRouting::Even);
// The same with the workspace of a GPU's operations, as far as it is known without one.
std::unique_ptr<tensor::Device> make_dry_gpu(tensor::Deterministic deterministic,
                                             DryRouting routing = DryRouting::Even);

// A GPU of those that the process sees: the one whose number is `local_rank` modulo how many there
// are. SystemError where this build has no CUDA device, where its libraries or the driver are
// missing, and where there is no GPU or no kernel for it.
std::unique_ptr<tensor::Device> make_cuda_device(
    int local_rank = 0,
    tensor::Deterministic deterministic = tensor::Deterministic::Yes);

// The GPUs of this machine, or the reason why there are none. Does not throw.
GpuReport gpu_report();

}  // namespace weft::kernels
