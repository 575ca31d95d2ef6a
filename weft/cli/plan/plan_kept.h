// The searches of `weft plan` that are kept: a command that goes on with one does not search again.
#pragma once

#include <optional>
#include <string>

#include "weft/plan/search/kept_search.h"

namespace weft::cli {

// A file under XDG_CACHE_HOME/weft/plan (else HOME/.cache/weft/plan) for each of the last few
// questions. It holds for the program that wrote it alone.
class KeptSearches {
 public:
  // `question`: plan::question_text().
  explicit KeptSearches(std::string question);

  // nullopt: there is none, it is of another program, or its file is damaged.
  std::optional<plan::KeptSearch> find() const;
  // Says nothing where it cannot be kept: the plan itself is whole.
  void keep(const plan::KeptSearch& kept) const;

 private:
  std::string question_;
  std::optional<std::filesystem::path> file_;  // nullopt: there is no place to keep it
};

}  // namespace weft::cli
