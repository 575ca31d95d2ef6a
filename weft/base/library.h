// Libraries of this project that the program loads from beside itself when somebody asks for what
// is in them: the program starts where what they need is not installed.
//
// Such a library exports one symbol, its entry: a struct whose member `version` names what it
// holds. Two builds whose entries differ have different versions.
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

}  // namespace weft::base
