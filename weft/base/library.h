// Libraries of this project that the program loads from beside itself when somebody asks for what
// is in them: the program starts where what they need is not installed.
//
// Such a library exports one symbol, its entry: a struct whose member `version` names what it
// holds. Two builds whose entries differ have different versions.
//
// Libraries of others are opened by the name of their file, and used by their symbols.
#pragma once

#include <string>
#include <string_view>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {

struct Library {
  const char* file = "";     // "libweft_cuda.so"
  const char* symbol = "";   // of its entry
  const char* version = "";  // that its entry must have
  std::string what;          // "CUDA device": in messages
  std::string how_to_build;  // where it is missing
};

// The address of its entry. The library stays loaded: what it made may live as long as the process.
// SystemError where it is missing, or cannot be loaded because something that it needs is missing.
const void* find_entry(const Library& library);
[[noreturn]] void throw_other_build(const Library& library);

template <typename Entry>
const Entry& load_entry(const Library& library) {
  const auto* entry = static_cast<const Entry*>(find_entry(library));
  if (std::string_view(entry->version) != library.version) throw_other_build(library);
  return *entry;
}

// A library of somebody else ("libcudnn.so.9"), from where the loader finds it or from the usual
// folders of CUDA's toolkit; null where it is not there. It stays loaded, as those of CUDA want it.
void* open_foreign(const char* file);
// Null where the library has no such symbol.
void* find_symbol(void* library, const char* name);

}  // namespace weft::base
