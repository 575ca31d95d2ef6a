#include "weft/base/library.h"

#include <dlfcn.h>

#include <array>
#include <filesystem>

namespace weft::base {
namespace {

namespace fs = std::filesystem;

// Folders of the CUDA toolkit that the loader may not know.
constexpr std::array<const char*, 3> kFolders{"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"};

// Looks beside the program, then in the installation.
fs::path path_of(const Library& library) {
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path beside = folder / library.file;
  if (fs::exists(beside, ignored)) return beside;
  const fs::path installed = folder.parent_path() / "lib/weft" / library.file;
  if (fs::exists(installed, ignored)) return installed;
  throw SystemError(text("this build of weft has no {}: {} is not in {}; {}",
                         library.what,
                         library.file,
                         folder.string(),
                         library.how_to_build));
}

}  // namespace

const void* find_entry(const Library& library) {
  void* loaded = ::dlopen(path_of(library).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    throw SystemError(text("the {} cannot be loaded: {}", library.what, ::dlerror()));
  }
  const void* entry = ::dlsym(loaded, library.symbol);
  if (entry == nullptr) throw_other_build(library);
  return entry;
}

void throw_other_build(const Library& library) {
  throw SystemError(text("{} is of another build of weft: build it again", library.file));
}

void* open_foreign(const char* file) {
  for (const char* folder : kFolders) {
    const std::string path = std::string(folder) + file;
    if (void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

void* find_symbol(void* library, const char* name) { return ::dlsym(library, name); }

}  // namespace weft::base
