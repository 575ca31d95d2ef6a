// Search of `weft plan MODEL ...`: its expensive part.
#pragma once

#include <atomic>
#include <vector>

#include "weft/cli/plan/plan_question.h"
#include "weft/plan/search/kept_search.h"

namespace weft::cli {

// Hardware of all files in the folder.
std::vector<plan::Hardware> all_hardware();

// New search of the question on all cores, with progress on the terminal. `others`: hardware to try
// if nothing fits. Throws plan::SearchStopped.
plan::KeptSearch search_for(const Question& question,
                            const plan::LayoutSpace& space,
                            std::size_t top,
                            const std::vector<plan::Hardware>& others,
                            const std::atomic<bool>& stop);

}  // namespace weft::cli
