#include "weft/words/megatron/split_data.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/config/blend_list.h"

namespace weft::words {
namespace {

constexpr std::array<std::string_view, 3> kSplitFlags{"--train-data-path",
                                                      "--valid-data-path",
                                                      "--test-data-path"};

bool names_training_or_test(std::string_view word) {
  const std::string_view flag = word.substr(0, word.find('='));
  return flag == kSplitFlags.front() || flag == kSplitFlags.back();
}

}  // namespace

SplitData::SplitData(std::span<const std::string> line)
    : splits_(std::ranges::any_of(line, names_training_or_test)) {}

bool SplitData::reads(std::string_view flag) const {
  return splits_ && std::ranges::find(kSplitFlags, flag) != kSplitFlags.end();
}

void SplitData::take(const std::string& flag, std::vector<std::string> words) {
  const auto split = std::ranges::find(kSplitFlags, flag) - kSplitFlags.begin();
  typed_.push_back(base::text("{} {}", flag, fmt::join(words, " ")));
  words_[static_cast<std::size_t>(split)] = std::move(words);
}

std::string SplitData::typed() const { return base::text("{}", fmt::join(typed_, " ")); }

std::vector<std::string> SplitData::blends() const {
  std::vector<std::string> all;
  for (const std::vector<std::string>& words : words_) all.push_back(config::blend_text(words));
  return all;
}

}  // namespace weft::words
