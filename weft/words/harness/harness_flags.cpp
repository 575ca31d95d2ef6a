#include "weft/words/harness/harness_flags.h"

#include <algorithm>
#include <array>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/config/codec.h"

namespace weft::words {

using namespace config;
namespace {

using S = HarnessSelection;

// Reasons why whole families of flags have no effect here.
constexpr std::string_view kJobs =
    "Weft starts its ranks itself or under mpirun, and submits no jobs";
constexpr std::string_view kData = "Weft reads mock, text and indexed data: see dataset.kind";
constexpr std::string_view kHub = "Weft never asks the Hugging Face hub";
constexpr std::string_view kEnvironment = "no variable of the environment changes a run";
constexpr std::string_view kClocks = "Weft leaves the clocks of the machine alone";
constexpr std::string_view kTrace = "runtime.trace=true writes Weft's own trace";
constexpr std::string_view kWandb = "metrics go to the run folder and nowhere else";

constexpr Does sets(std::string_view key, SelectionMember member = {}) {
  return {.kind = Does::Kind::SetsKey, .text = key, .effect = {}, .member = member};
}
constexpr Does acts(Effect effect, SelectionMember member = {}) {
  return {.kind = Does::Kind::Acts, .text = "", .effect = effect, .member = member};
}
constexpr Does selects(SelectionMember member) {
  return {.kind = Does::Kind::Selects, .text = "", .effect = {}, .member = member};
}
constexpr Does inert(std::string_view why) {
  return {.kind = Does::Kind::Nothing, .text = why, .effect = {}, .member = {}};
}

std::string lower(std::string_view typed) {
  std::string small(typed);
  for (char& c : small) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return small;
}

std::optional<std::string> integer(std::string_view typed) {
  const auto value = base::parse_integer(typed);
  return value ? std::optional(base::text("{}", *value)) : std::nullopt;
}

std::optional<std::string> switched(std::string_view typed) {
  const std::string small = lower(typed);
  for (const char* word : {"true", "1", "yes"}) {
    if (small == word) return "true";
  }
  for (const char* word : {"false", "0", "no"}) {
    if (small == word) return "false";
  }
  return std::nullopt;
}

// Matching word in its spelling or in lower case.
std::optional<std::string> one_of(std::string_view words, std::string_view typed) {
  const std::vector<std::string> all = base::split(words, ' ');
  for (const std::string& word : {std::string(typed), lower(typed)}) {
    if (std::ranges::find(all, word) != all.end()) return word;
  }
  return std::nullopt;
}

std::optional<std::string> some_of(std::string_view words, std::string_view typed) {
  std::string_view inside = base::trim(typed);
  if (inside.size() >= 2 && inside.front() == '[' && inside.back() == ']') {
    inside = base::trim(inside.substr(1, inside.size() - 2));
  }
  if (inside.empty()) return "[]";
  std::vector<std::string> all;
  for (const std::string& item : base::split(inside, ',')) {
    const auto word = one_of(words, base::trim(item));
    if (!word) return std::nullopt;
    all.push_back(*word);
  }
  return base::text("[{}]", fmt::join(all, ","));
}

// Flags of earlier releases: 25.11 names a recipe by its family and its size, 25.09 a precision by
// two words.
constexpr HarnessFlag kRetired[] = {{.name = "model_size",
                                     .brief = "s",
                                     .takes = Takes::LowerText,
                                     .words = "",
                                     .initial = "",
                                     .does = selects(&S::size),
                                     .meaning = "second part of the recipe's name"},
                                    {.name = "fp8_recipe",
                                     .brief = "fr",
                                     .takes = Takes::Word,
                                     .words = "ds cs mx sc",
                                     .initial = "ds",
                                     .does = inert("--compute_dtype fp8 takes its scaling from it"),
                                     .meaning = "scaling of --compute_dtype fp8"},
                                    {.name = "hf_home",
                                     .brief = "",
                                     .takes = Takes::Text,
                                     .words = "",
                                     .initial = "",
                                     .does = inert(kHub),
                                     .meaning = "folder of the hub's files"},
                                    {.name = "hf_datasets_cache",
                                     .brief = "",
                                     .takes = Takes::Text,
                                     .words = "",
                                     .initial = "",
                                     .does = inert(kHub),
                                     .meaning = "folder of the hub's data"}};

}  // namespace

std::span<const HarnessFlag> harness_flags() {
  using enum Takes;
#define WEFT_HARNESS_FLAG(name, brief, takes, words, initial, does, meaning) \
  HarnessFlag{name, brief, takes, words, initial, does, meaning},
  static const std::vector<HarnessFlag> all{
#include "weft/words/harness/harness_flags.def"
  };
#undef WEFT_HARNESS_FLAG
  return all;
}

const HarnessFlag* find_harness_flag(std::string_view dashed) {
  const bool whole = dashed.starts_with("--");
  if (!whole && !dashed.starts_with("-")) return nullptr;
  std::string_view name = dashed.substr(whole ? 2 : 1);
  if (name.empty()) return nullptr;
  for (const HarnessFlag& flag : kRetired) {
    if ((whole ? flag.name : flag.brief) == name) return &flag;
  }
  if (whole && name == "model_name") name = "model_family_name";
  for (const HarnessFlag& flag : harness_flags()) {
    if ((whole ? flag.name : flag.brief) == name) return &flag;
  }
  return nullptr;
}

std::string current_value(const HarnessFlag& flag,
                          const std::string& given,
                          std::span<const std::string> line) {
  if (flag.name == "task" && given == "lora") return "peft";
  if (flag.name != "compute_dtype" || given != "fp8") return given;
  constexpr std::string_view kScaling = "--fp8_recipe=";
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i].starts_with(kScaling)) return "fp8_" + line[i].substr(kScaling.size());
    const bool is_flag = line[i] == "--fp8_recipe" || line[i] == "-fr";
    if (is_flag && i + 1 < line.size()) return "fp8_" + line[i + 1];
  }
  return "fp8_ds";
}

const HarnessFlag* find_harness_prefix(std::string_view dashed) {
  constexpr std::size_t kShortest = 3;
  if (!dashed.starts_with("--") || dashed.size() < 2 + kShortest) return nullptr;
  const std::string_view begin = dashed.substr(2);
  if (begin.find('-') != std::string_view::npos) return nullptr;
  const HarnessFlag* found = nullptr;
  for (const HarnessFlag& flag : harness_flags()) {
    if (!flag.name.starts_with(begin)) continue;
    if (found != nullptr) return nullptr;
    found = &flag;
  }
  return found;
}

std::optional<std::string> accepted_value(const HarnessFlag& flag, std::string_view typed) {
  using enum Takes;
  switch (flag.takes) {
    case Nothing:
      return "true";
    case Text:
      return WordCodec<std::string>::parse(std::string(typed));
    case LowerText:
      return WordCodec<std::string>::parse(lower(typed));
    case Word:
      return one_of(flag.words, typed);
    case Words:
      return some_of(flag.words, typed);
    case IntegerOrNone:
    case MaybeInteger:
      if (lower(typed) == "none" || typed == "null") return "null";
      return integer(typed);
    case Integer:
      return integer(typed);
    case Number:
      return WordCodec<double>::parse(std::string(typed)) ? std::optional(std::string(typed))
                                                          : std::nullopt;
    case Switch:
      return switched(typed);
  }
  UNREACHABLE("{}", static_cast<int>(flag.takes));
}

std::string takes_text(const HarnessFlag& flag) {
  using enum Takes;
  switch (flag.takes) {
    case Nothing:
      return "nothing";
    case Text:
    case LowerText:
      return "a text";
    case Word:
      return base::text("one of {}", fmt::join(base::split(flag.words, ' '), ", "));
    case Words:
      return base::text("some of {}, separated by commas",
                        fmt::join(base::split(flag.words, ' '), ", "));
    case Integer:
    case MaybeInteger:
      return "an integer";
    case IntegerOrNone:
      return "an integer or None";
    case Number:
      return "a finite number";
    case Switch:
      return "true or false";
  }
  UNREACHABLE("{}", static_cast<int>(flag.takes));
}

bool chooses_recipe(const HarnessFlag& flag) {
  constexpr std::array<std::string_view, 7> kChoosing{"domain",
                                                      "model_family_name",
                                                      "model_recipe_name",
                                                      "model_size",
                                                      "use_recipes",
                                                      "task",
                                                      "config_variant"};
  return std::ranges::find(kChoosing, flag.name) != kChoosing.end();
}

void select(const HarnessFlag& flag, std::string_view accepted, HarnessSelection& selection) {
  const SelectionMember& member = flag.does.member;
  if (const auto* text = std::get_if<std::string S::*>(&member)) {
    selection.** text = accepted;
  } else if (const auto* count = std::get_if<std::optional<std::int64_t> S::*>(&member)) {
    selection.** count = base::parse_integer(accepted);
  } else if (const auto* number = std::get_if<double S::*>(&member)) {
    selection.** number = *base::parse_number(accepted);
  } else if (const auto* on = std::get_if<bool S::*>(&member)) {
    selection.** on = accepted == "true";
  }
}

}  // namespace weft::words
