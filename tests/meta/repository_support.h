// The repository as the tests of its rules see it: its own files, as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::meta {

struct TextFile {
  std::string path;  // from the root, with '/'
  std::string text;
};

using Complaints = std::vector<std::string>;

// Files below a folder of the repository ("" for all of it) whose names end in one of `endings`, by
// path. What is built (build/, runs/) and what starts with a dot is left out.
std::vector<TextFile> files_below(std::string_view folder, const std::vector<std::string>& endings);

// True for a file or folder of the repository.
bool exists(std::string_view path);

std::vector<std::string> lines_of(std::string_view text);
std::vector<std::string> words_of(std::string_view line);
void append(Complaints& all, Complaints more);
// One a line, for a test's message.
std::string listed(const Complaints& complaints);

}  // namespace weft::meta
