// Repository for the tests of its rules: its own files, as text.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft::meta {

struct TextFile {
  std::string path;  // from the root, with '/'
  std::string text;
};

using Complaints = std::vector<std::string>;

// Files below a folder of the repository ("": all) with one of the `endings`, sorted by path.
// Excluded: build/, runs/ and names that begin with a dot.
std::vector<TextFile> files_below(std::string_view folder, const std::vector<std::string>& endings);

// True for a file or folder of the repository.
bool exists(std::string_view path);

// Files that differ from the branch that the current one follows, committed or not. nullopt:
// unknown (no git, no such branch), or `make soak` asks for all.
std::optional<std::set<std::string>> changed_files();

std::vector<std::string> lines_of(std::string_view text);
std::vector<std::string> words_of(std::string_view line);
void append(Complaints& all, Complaints more);
// One per line, for a test's message.
std::string listed(const Complaints& complaints);

}  // namespace weft::meta
