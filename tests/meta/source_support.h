// Rules for the text of sources: calls in library code, and length and names of files.
#pragma once

#include <map>

#include "tests/meta/repository_support.h"

namespace weft::meta {

// Code without comments and without the contents of string and character literals; line numbers
// stay.
std::string code_of(std::string_view text);
// Code without comments; literals stay.
std::string uncommented(std::string_view text);

// Library code reads no environment, prints no text and ends no process: that is the task of cli/.
Complaints library_complaints(const TextFile& file);

inline constexpr std::size_t kMostLines = 500;
// Files that may be longer, each with its reason.
using Reasons = std::map<std::string, std::string, std::less<>>;
Complaints length_complaints(const TextFile& file, const Reasons& reasons);

// Names that do not tell the contents.
Complaints name_complaints(std::string_view path);

// Words that mark unfinished work.
Complaints unfinished_complaints(const TextFile& file);

}  // namespace weft::meta
