// Rules for the text of sources: what library code may call, how long and how named files are.
#pragma once

#include <map>

#include "tests/meta/repository_support.h"

namespace weft::meta {

// The code without comments and without the contents of string and character literals; lines stay
// where they are.
std::string code_of(std::string_view text);
// The code without comments; literals stay.
std::string uncommented(std::string_view text);

// A library reads no environment, prints nothing and ends no process: that is for cli/ to do.
Complaints library_complaints(const TextFile& file);

inline constexpr std::size_t kMostLines = 500;
// Files that may be longer, each with its reason.
using Reasons = std::map<std::string, std::string, std::less<>>;
Complaints length_complaints(const TextFile& file, const Reasons& reasons);

// Names that say nothing about what is inside.
Complaints name_complaints(std::string_view path);

// Words that mark something as not finished.
Complaints unfinished_complaints(const TextFile& file);

}  // namespace weft::meta
