#include "weft/plan/published/published_pairs.h"

#include <algorithm>
#include <cmath>

#include "weft/base/text.h"
#include "weft/plan/published/validation.h"

namespace weft::plan {
namespace {

using base::text;

bool are_alike(const PublishedRun& one, const PublishedRun& other) {
  return one.release == other.release && one.model == other.model && one.system == other.system;
}

const char* sign_text(const PublishedPair& pair) {
  if (pair.is_tie()) return pair.has_right_sign() ? "a tie, as predicted" : "wrong: no tie";
  return pair.has_right_sign() ? "right" : "wrong";
}

}  // namespace

bool PublishedPair::is_tie() const { return std::abs(published()) <= kSmallGain; }

const std::string& PublishedPair::doubt() const {
  return with->run->doubt.empty() ? without->run->doubt : with->run->doubt;
}

bool PublishedPair::has_right_sign() const {
  const double was = published(), is = predicted();
  if (is_tie()) return std::abs(is) <= kSmallGain;
  return std::abs(is) > kSmallGain && (was > 0) == (is > 0);
}

std::vector<PublishedPair> pairs_of(const Validation& validation) {
  std::vector<PublishedPair> pairs;
  for (const PricedRun& row : validation.rows) {
    if (row.run->note != "without") continue;
    const auto with = std::ranges::find_if(validation.rows, [&](const PricedRun& other) {
      return other.run->note == "with" && are_alike(*row.run, *other.run);
    });
    if (with != validation.rows.end()) pairs.push_back({.without = &row, .with = &*with});
  }
  return pairs;
}

base::Json to_json(const std::vector<PublishedPair>& pairs) {
  base::Json list = base::Json::array();
  for (const PublishedPair& pair : pairs) {
    list.push_back({{"release", pair.with->run->release},
                    {"model", pair.with->run->model},
                    {"system", pair.with->run->system},
                    {"lines", {pair.without->run->line, pair.with->run->line}},
                    {"published", pair.published()},
                    {"predicted", pair.predicted()},
                    {"tie", pair.is_tie()},
                    {"right_sign", pair.has_right_sign()},
                    {"doubt", pair.doubt()}});
  }
  return list;
}

std::string to_text(const std::vector<PublishedPair>& pairs) {
  if (pairs.empty()) return "";
  std::string all =
      text("\ngain of a knob, throughput with over without\n{:24} {:20} {:>9} {:>9}  {}\n",
           "pair",
           "model",
           "published",
           "predicted",
           "sign");
  for (const PublishedPair& pair : pairs) {
    all += text("{:24} {:20} {:>+8.1f}% {:>+8.1f}%  {}\n",
                base::shown(pair.with->run->release),
                base::shown(pair.with->run->model),
                pair.published() * 100,
                pair.predicted() * 100,
                sign_text(pair));
  }
  std::int64_t ties = 0, met = 0, right = 0;
  for (const PublishedPair& pair : pairs) {
    ties += pair.is_tie() ? 1 : 0;
    met += pair.is_tie() && pair.has_right_sign() ? 1 : 0;
    right += !pair.is_tie() && pair.has_right_sign() ? 1 : 0;
  }
  all += text("{} of {} pairs have the right sign", right, std::ssize(pairs) - ties);
  if (ties > 0) {
    all += text("; {} of {} measured as no more than {:.0f} % {} predicted so, and {} no sign",
                met,
                base::counted(ties, "tie"),
                PublishedPair::kSmallGain * 100,
                met == 1 ? "is" : "are",
                ties == 1 ? "has" : "have");
  }
  all += "\n";
  for (const PublishedPair& pair : pairs) {
    if (pair.doubt().empty()) continue;
    all += text("{}: its source contradicts itself, so that only the sign is held: {}\n",
                base::shown(pair.with->run->release),
                base::shown(pair.doubt()));
  }
  return all;
}

}  // namespace weft::plan
