#include "weft/cli/run/libraries.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "weft/base/library.h"
#include "weft/base/text.h"
#include "weft/comm/launch.h"
#include "weft/events/event.h"
#include "weft/kernels/onednn_report.h"

namespace weft::cli {
namespace {

using base::text;
using Names = std::vector<std::string>;

// First library found; nullptr: none.
void* open_library(const Names& names) {
  for (const std::string& name : names) {
    if (void* library = base::open_foreign(name.c_str())) return library;
  }
  return nullptr;
}

template <typename Function>
Function* function_of(void* library, const char* name) {
  return reinterpret_cast<Function*>(base::find_symbol(library, name));
}

// 22809 is "2.28.9".
std::string three_parts(std::size_t version) {
  return text("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// 13000 is "13.0".
std::string cuda_version(int version) { return text("{}.{}", version / 1000, version % 1000 / 10); }

// Adds the version of a found library by `ask(library)`.
template <typename Ask>
LibraryFact fact(std::string name, std::string use, const Names& files, const Ask& ask) {
  LibraryFact result{.name = std::move(name), .use = std::move(use)};
  if (void* library = open_library(files)) {
    result.found = true;
    result.version = ask(library);
  }
  return result;
}

// "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
std::string openblas_version(void* library) {
  const auto ask = function_of<char*()>(library, "openblas_get_config");
  const Names words = ask == nullptr ? Names{} : base::split(ask(), ' ');
  return words.size() > 1 ? words[1] : std::string();
}

// Processor kernels chosen by OpenBLAS: a version older than the processor chooses those of a much
// older one. Empty: it is not loaded.
std::string openblas_kernels() {
  void* library = open_library({"libopenblas.so.0", "libopenblas.so"});
  const auto ask =
      library == nullptr ? nullptr : function_of<char*()>(library, "openblas_get_corename");
  if (ask == nullptr) return {};
  const std::string core = ask();
  std::string told = text(", with kernels for {}", core);
  if (core == "Prescott" || core == "Core2" || core == "Generic") {
    told +=
        ": where the processor is newer, OPENBLAS_CORETYPE=Haswell is faster, and SkylakeX where "
        "it has AVX-512";
  }
  return told;
}

// "Open MPI v4.1.4, package: ...": the rest is cut, as it may name the build machine.
std::string mpi_version(void* library) {
  const auto ask = function_of<int(char*, int*)>(library, "MPI_Get_library_version");
  if (ask == nullptr) return {};
  std::vector<char> said(8192);  // enough for any MPI
  int length = 0;
  ask(said.data(), &length);
  const Names words = base::split(base::split(said.data(), ',').front(), ' ');
  const std::string& last = words.back();
  return last.starts_with('v') ? last.substr(1) : std::string();
}

// Versions by return value, and versions written through a pointer.
std::string returned_version(void* library, const char* name) {
  const auto ask = function_of<std::size_t()>(library, name);
  return ask == nullptr ? std::string() : three_parts(ask());
}
std::string written_version(void* library, const char* name, std::string (*to_text)(int)) {
  const auto ask = function_of<int(int*)>(library, name);
  int version = 0;
  return ask == nullptr || ask(&version) != 0 || version == 0 ? std::string() : to_text(version);
}

// Release of the kernel module: "580.65.06".
std::string driver_release() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string release;
  file >> release;
  return release;
}

std::string driver_version(void* library) {
  const std::string cuda = written_version(library, "cuDriverGetVersion", cuda_version);
  const std::string release = driver_release();
  if (release.empty()) return cuda.empty() ? "" : text("CUDA {}", cuda);
  return text("{} (CUDA {})", release, cuda);
}

LibraryFact onednn(const kernels::OnednnReport& report) {
  const std::string absent = "products on an x86-64 CPU with AVX-512; Debian: libdnnl-dev";
  if (report.version.empty()) return {.name = "oneDNN", .use = absent};
  return {.name = "oneDNN",
          .found = true,
          .version = report.version,
          .use = report.why_not.empty() ? "products on a CPU"
                                        : text("not used here: {}", report.why_not)};
}

LibraryFact openblas(const kernels::OnednnReport& report) {
  return fact("OpenBLAS",
              report.why_not.empty() ? "not used here: oneDNN computes products on this CPU"
                                     : "products on a CPU" + openblas_kernels(),
              {"libopenblas.so.0", "libopenblas.so"},
              openblas_version);
}

LibraryFact cuda_runtime(const kernels::GpuReport& gpus) {
  const std::string use = "streams and memory of a GPU";
  if (gpus.library_loaded) {
    return {.name = "CUDA runtime",
            .found = true,
            .version = cuda_version(gpus.runtime_version),
            .use = use};
  }
  return fact("CUDA runtime", use, {"libcudart.so.13", "libcudart.so.12"}, [](void* library) {
    return written_version(library, "cudaRuntimeGetVersion", cuda_version);
  });
}

}  // namespace

std::vector<LibraryFact> find_libraries(const kernels::GpuReport& gpus) {
  const LibraryFact device{.name = "libweft_cuda.so",
                           .found = gpus.library_loaded,
                           .version = gpus.library_loaded ? WEFT_VERSION : "",
                           .use = "runtime.device=cuda"};
  const bool nccl = comm::why_no_nccl().empty();
  const LibraryFact backend{.name = "libweft_nccl.so",
                            .found = nccl,
                            .version = nccl ? WEFT_VERSION : "",
                            .use = "runtime.backend=nccl"};
  const kernels::OnednnReport products = kernels::onednn_report();
  return {openblas(products),
          onednn(products),
          fact("Open MPI", "runtime.backend=mpi", {"libmpi.so.40", "libmpi.so"}, mpi_version),
          {.name = "protobuf",
           .found = !events::protobuf_version().empty(),
           .version = events::protobuf_version(),
           .use = "logger.tensorboard_dir"},
          device,
          backend,
          fact("NVIDIA driver", "every GPU", {"libcuda.so.1"}, driver_version),
          cuda_runtime(gpus),
          fact("cuBLASLt",
               "products on a GPU",
               {"libcublasLt.so.13", "libcublasLt.so.12"},
               [](void* library) { return returned_version(library, "cublasLtGetVersion"); }),
          fact("cuDNN",
               "attention in bf16 on a GPU",
               {"libcudnn.so.9"},
               [](void* library) { return returned_version(library, "cudnnGetVersion"); }),
          fact("NCCL", "runtime.backend=nccl", {"libnccl.so.2"}, [](void* library) {
            return written_version(library, "ncclGetVersion", [](int version) {
              return three_parts(static_cast<std::size_t>(version));
            });
          })};
}

bool has_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  if (path == nullptr) return false;
  for (const std::string& folder : base::split(path, ':')) {
    if (::access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace weft::cli
