// Compares names of code in documentation pages with the code.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/meta/page_support.h"

namespace weft::meta {

using Names = std::set<std::string, std::less<>>;

// Distinct identifiers of a text.
Names identifiers_of(std::string_view text);

// All names in the sources. Comments are ignored: they may mention removed names.
class Symbols {
 public:
  explicit Symbols(const std::vector<TextFile>& sources);

  // Adds names that are not C++ but may stand alone in a page: recipes, folders of tests.
  void add_words(const Names& words);

  // True if code has `name`. For A::b with a namespace A, a file of that namespace must have b;
  // with a type A, one file must have both.
  bool has_code(std::string_view name) const;
  // True if code, a string in it, or an added word has `name`.
  bool has_word(std::string_view name) const;

 private:
  bool has_member(const std::string& scope, const std::string& member) const;

  std::vector<Names> files_;
  std::map<std::string, Names, std::less<>> namespaces_;
  Names code_, words_;
};

// Names in a page's spans and cpp fences that the sources lack. A span is checked if it is a single
// name: a call `f()`, a qualified name `a::b`, a type `LikeThis`, a constant `kThis`, or a name
// with an underscore. A part in capitals (`add_NAME`) leaves the name open. `foreign`: names of
// other programs, each with its origin.
using Origins = std::map<std::string, std::string, std::less<>>;
Complaints symbol_complaints(const Page& page, const Symbols& symbols, const Origins& foreign);

}  // namespace weft::meta
