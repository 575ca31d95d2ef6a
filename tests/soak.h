// Extent of drawn and exhaustive tests. `make test` runs a part that covers every kind of case;
// `make soak`, which sets WEFT_SOAK, runs all.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace weft {

inline bool soaks() { return std::getenv("WEFT_SOAK") != nullptr; }

// Cases, draws or steps of a test: `few` in `make test`, `many` in `make soak`.
template <typename Number>
Number few_or_many(Number few, Number many) {
  return soaks() ? many : few;
}

// Every third case of a list in `make test`, from `first` (0 to 2) on, so that tests over one list
// may share it; all cases in `make soak`.
template <typename Case>
std::vector<Case> third_or_all(const std::vector<Case>& all, std::size_t first = 0) {
  if (soaks()) return all;
  std::vector<Case> some;
  for (std::size_t i = first; i < all.size(); i += 3) some.push_back(all[i]);
  return some;
}

}  // namespace weft
