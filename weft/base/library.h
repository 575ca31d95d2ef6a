// Shared libraries, loaded on demand so that the program starts without their dependencies.
//
// A library of this project lies beside the program and exports one symbol, its entry: a struct
// whose member `version` identifies the interface. Builds with different entries have different
// versions.
//
// Foreign libraries are opened by file name and used by symbol.
#pragma once

#include <string>
#include <string_view>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {

struct Library {
  const char* file = "";     // "libweft_cuda.so"
  const char* symbol = "";   // symbol of the entry
  const char* version = "";  // required of its entry
  std::string what;          // "CUDA device": for messages
  std::string how_to_build;  // for the error if it is missing
};

// Address of the entry. The library stays loaded, because its objects may live as long as the
// process. Throws SystemError if the library or one of its dependencies is missing.
const void* find_entry(const Library& library);
[[noreturn]] void throw_other_build(const Library& library);

template <typename Entry>
const Entry& load_entry(const Library& library) {
  const auto* entry = static_cast<const Entry*>(find_entry(library));
  if (std::string_view(entry->version) != library.version) throw_other_build(library);
  return *entry;
}

// Opens a foreign library ("libcudnn.so.9") from the loader's path or the usual folders of the CUDA
// toolkit; nullptr: not found. It stays loaded, as CUDA's libraries require.
void* open_foreign(const char* file);
// nullptr: no such symbol.
void* find_symbol(void* library, const char* name);

}  // namespace weft::base
