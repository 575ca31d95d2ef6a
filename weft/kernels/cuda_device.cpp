// The CUDA device is a library of its own (libweft_cuda.so), loaded when somebody asks for a GPU:
// the program itself starts where no CUDA is installed.
#include <dlfcn.h>

#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/kernels/cuda_entry.h"
#include "weft/kernels/device.h"

namespace weft::kernels {
namespace {

namespace fs = std::filesystem;

// Beside the program, or where it is installed.
fs::path library_path() {
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path beside = folder / cuda::kLibrary;
  if (fs::exists(beside, ignored)) return beside;
  const fs::path installed = folder.parent_path() / "lib/weft" / cuda::kLibrary;
  if (fs::exists(installed, ignored)) return installed;
  throw base::SystemError(base::text(
      "this build of weft has no CUDA device: {} is not in {}; build it where the CUDA toolkit "
      "(12.4 or later) is installed (cmake --build --preset release --target weft_cuda)",
      cuda::kLibrary,
      folder.string()));
}

// The library stays loaded: its devices may live as long as the process.
const cuda::Entry& load() {
  const fs::path path = library_path();
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw base::SystemError(base::text("the CUDA device cannot be loaded: {}", ::dlerror()));
  }
  const auto* entry = static_cast<const cuda::Entry*>(::dlsym(library, cuda::kEntrySymbol));
  if (entry == nullptr || std::string_view(entry->version) != cuda::kEntryVersion) {
    throw base::SystemError(
        base::text("{} is of another build of weft: build it again", path.string()));
  }
  return *entry;
}

}  // namespace

std::unique_ptr<tensor::Device> make_cuda_device(int ordinal) {
  static const cuda::Entry& kEntry = load();
  return std::unique_ptr<tensor::Device>(kEntry.make_device(ordinal));
}

}  // namespace weft::kernels
