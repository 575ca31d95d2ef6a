// The CUDA device is a library of its own (libweft_cuda.so), loaded when a GPU is asked for. The
// program itself starts without CUDA.
#include "weft/base/library.h"
#include "weft/kernels/cuda_entry.h"
#include "weft/kernels/device.h"

namespace weft::kernels {
namespace {

const cuda::Entry& load() {
  return base::load_entry<cuda::Entry>(
      {.file = cuda::kLibrary,
       .symbol = cuda::kEntrySymbol,
       .version = cuda::kEntryVersion,
       .what = "CUDA device",
       .how_to_build =
           "build it where the CUDA toolkit (12.4 or later) is installed (cmake --build --preset "
           "release --target weft_cuda)"});
}

const cuda::Entry& entry() {
  static const cuda::Entry& kEntry = load();
  return kEntry;
}

}  // namespace

std::unique_ptr<tensor::Device> make_cuda_device(int local_rank,
                                                 tensor::Deterministic deterministic) {
  return std::unique_ptr<tensor::Device>(entry().make_device(local_rank, deterministic));
}

GpuReport gpu_report() {
  GpuReport report;
  try {
    const cuda::Entry& found = entry();
    report.library_loaded = true;
    found.report(report);
  } catch (const std::exception& error) {
    report.why_none = error.what();
  }
  return report;
}

}  // namespace weft::kernels
