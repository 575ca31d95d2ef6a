// Kept searches of `weft plan`: a follow-up command does not search again.
#pragma once

#include <optional>
#include <string>

#include "weft/plan/search/kept_search.h"

namespace weft::cli {

// One file per question under XDG_CACHE_HOME/weft/plan (otherwise HOME/.cache/weft/plan), for the
// last few questions. Valid only for the program that wrote it.
class KeptSearches {
 public:
  // `question`: plan::question_text().
  explicit KeptSearches(std::string question);

  // Kept search for `top` layouts or more, cut to `top`. nullopt: none kept, from another program,
  // or damaged, which a warning says. With a space, every layout must be one of it.
  std::optional<plan::KeptSearch> find(std::size_t top,
                                       const plan::LayoutSpace* space = nullptr) const;
  // Ignores failures: the plan itself is complete.
  void keep(const plan::KeptSearch& kept) const;

 private:
  std::nullopt_t damaged() const;

  std::string question_;
  std::optional<std::filesystem::path> file_;  // nullopt: no place to keep it
};

}  // namespace weft::cli
