#include "weft/rules/advice/advice.h"

#include <algorithm>

#include "weft/rules/advice/topics.h"

namespace weft::rules {

using namespace config;

std::optional<Note> note(std::string key, std::string message, std::string fix) {
  return Note{.id = {},
              .key = std::move(key),
              .message = std::move(message),
              .fix = std::move(fix)};
}

std::span<const Advice> all_advice() {
  static const std::vector<Advice> all = [] {
    std::vector<Advice> joined;
    for (const std::span<const Advice> table :
         {overlap_advice(), memory_advice(), platform_advice(), layout_advice()}) {
      joined.insert(joined.end(), table.begin(), table.end());
    }
    return joined;
  }();
  return all;
}

const Advice* find_advice(std::string_view id) {
  const auto all = all_advice();
  const auto at = std::ranges::find(all, id, &Advice::id);
  return at == all.end() ? nullptr : &*at;
}

std::vector<Note> advise(const Config& config) {
  std::vector<Note> notes;
  for (const Advice& advice : all_advice()) {
    std::optional<Note> said = advice.judge(config);
    if (!said) continue;
    said->id = advice.id;
    notes.push_back(std::move(*said));
  }
  return notes;
}

}  // namespace weft::rules
