// Names of the code that a page of documentation uses, held against the code.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/meta/page_support.h"

namespace weft::meta {

using Names = std::set<std::string, std::less<>>;

// The identifiers of a text, each once.
Names identifiers_of(std::string_view text);

// Every name that the sources have. Comments count for nothing: they may tell of what is gone.
class Symbols {
 public:
  explicit Symbols(const std::vector<TextFile>& sources);

  // Names that are not C++, but may stand alone in a page: recipes, folders of tests.
  void add_words(const Names& words);

  // Whether code has `name`. Of A::b, where A is a namespace, a file of that namespace must have
  // b; where A is a type, one file must have both.
  bool has_code(std::string_view name) const;
  // Whether code, a string in it, or one of the added words has `name`.
  bool has_word(std::string_view name) const;

 private:
  bool has_member(const std::string& scope, const std::string& member) const;

  std::vector<Names> files_;
  std::map<std::string, Names, std::less<>> namespaces_;
  Names code_, words_;
};

// Names in a page's spans and in its cpp fences that the sources do not have. A span is held where
// it is one name: a call `f()`, a qualified name `a::b`, a type `LikeThis`, a constant `kThis`, or
// a name with an underscore. A part in capitals (`add_NAME`) leaves the name open. `foreign` are
// the names of other programs, each with its origin.
using Origins = std::map<std::string, std::string, std::less<>>;
Complaints symbol_complaints(const Page& page, const Symbols& symbols, const Origins& foreign);

}  // namespace weft::meta
