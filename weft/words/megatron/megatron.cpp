#include "weft/words/megatron/megatron.h"

#include <algorithm>
#include <map>

#include "weft/base/text.h"

namespace weft::words {
namespace {

constexpr std::string_view kCore = "there is one model, written once";
constexpr std::string_view kRope = "model.position_embedding_type says how positions count";
constexpr std::string_view kKernels = "kernels are chosen by the engine";
constexpr std::string_view kMetrics = "metrics go to the run folder, and to TensorBoard";
constexpr std::string_view kProfile = "runtime.trace=true writes Weft's own trace";
constexpr std::string_view kInference = "a training run generates nothing";
constexpr std::string_view kReinforce = "it counts with --perform-rl-step alone";
constexpr std::string_view kMamba = "layers are attention and feed-forward, and none is Mamba's";
constexpr std::string_view kTpParts = "tensor-parallel overlap is one switch, and priced as one";
constexpr std::string_view kSharding =
    "how sharded gradients and weights are kept and sent is priced at its default";
constexpr std::string_view kOneFormat =
    "checkpoints have one format; checkpoint.save_hf writes weights as Transformers opens them";
constexpr std::string_view kWordsDecide =
    "the words of a run decide, also where it goes on from a checkpoint";
constexpr std::string_view kReads = "ranks read their data themselves, without masks";
constexpr std::string_view kTokens = "data is token ids, or bytes: dataset.kind says which";
constexpr std::string_view kRestart = "what starts a run again is the scheduler of the machine";
constexpr std::string_view kPeft = "all weights are trained; adapters such as LoRA are not built";

constexpr MegatronMeaning setting(std::string_view settings) {
  return {.kind = MegatronMeaning::Kind::Sets, .text = settings};
}
constexpr MegatronMeaning acting(Effect effect) {
  return {.kind = MegatronMeaning::Kind::Acts, .text = "", .effect = effect};
}
constexpr MegatronMeaning idle(std::string_view why) {
  return {.kind = MegatronMeaning::Kind::Idle, .text = why};
}
constexpr MegatronMeaning noted(std::string_view why) {
  return {.kind = MegatronMeaning::Kind::Noted, .text = why};
}
constexpr MegatronMeaning refused(std::string_view why) {
  return {.kind = MegatronMeaning::Kind::Refused, .text = why};
}
constexpr MegatronMeaning unmodelled(std::string_view why) {
  return {.kind = MegatronMeaning::Kind::Unmodelled, .text = why};
}
constexpr MegatronMeaning unmodelled_with(std::string_view key, std::string_view why) {
  return {.kind = MegatronMeaning::Kind::UnmodelledWith, .text = why, .key = key};
}
constexpr MegatronMeaning as_key(std::string_view key, std::string_view why) {
  return {.kind = MegatronMeaning::Kind::AsKey, .text = why, .key = key};
}

struct Row {
  std::string_view section, names, same;
  MegatronMeaning meaning;
};

constexpr Row kRows[] = {
#define WEFT_MEGATRON(section, names, same, does) Row{section, names, same, does},
#include "weft/words/megatron/megatron.def"
#undef WEFT_MEGATRON
};

// A spelling with dashes is used unchanged.
std::string flag_name(std::string_view name) {
  std::string flag = "--" + std::string(name);
  if (name.find('-') == std::string_view::npos) std::ranges::replace(flag, '_', '-');
  return flag;
}

// Parses `name`, `name>!flag=..`.
MegatronWord word_of(const Row& row, std::string_view written) {
  const auto takes = [&] {
    if (written.ends_with("=..")) return MegatronWord::Takes::Values;
    return written.ends_with('=') ? MegatronWord::Takes::Value : MegatronWord::Takes::Nothing;
  }();
  written = written.substr(0, written.find('='));
  const std::size_t arrow = written.find('>');
  const std::string_view name = written.substr(0, arrow);
  std::string_view flag = arrow == std::string_view::npos ? name : written.substr(arrow + 1);
  const bool denies = flag.starts_with('!');
  if (denies) flag.remove_prefix(1);
  MegatronWord word{.key = "",
                    .flag = flag == "-" ? "" : flag_name(flag),
                    .takes = takes,
                    .says = !denies,
                    .same = row.same,
                    .meaning = row.meaning};
  if (row.section == "-") word.key = name;
  if (!row.section.empty() && row.section != "-") word.key = base::text("{}.{}", row.section, name);
  return word;
}

std::vector<MegatronWord> read_words_of_table() {
  std::vector<MegatronWord> all;
  for (const Row& row : kRows) {
    for (const std::string& name : base::split(row.names, ' ')) all.push_back(word_of(row, name));
  }
  return all;
}

using Index = std::map<std::string_view, const MegatronWord*>;

// The first of two words with one name counts.
Index index_by(std::string MegatronWord::*name) {
  Index index;
  for (const MegatronWord& word : megatron_words()) {
    if (!(word.*name).empty()) index.emplace(word.*name, &word);
  }
  return index;
}

bool is_nothing(std::string_view value) { return value == "null" || value == "None"; }

bool is_equal(std::string_view value, std::string_view other) {
  if (value == other || (is_nothing(value) && is_nothing(other))) return true;
  if (value == "True") return other == "true";
  if (value == "False") return other == "false";
  const auto number = base::parse_number(value), second = base::parse_number(other);
  return number && second && *number == *second;
}

}  // namespace

bool MegatronWord::has_opposite() const {
  if (takes != MegatronWord::Takes::Nothing || meaning.kind == MegatronMeaning::Kind::Refused)
    return false;
  return meaning.kind != MegatronMeaning::Kind::Sets ||
         meaning.text.find("{}") != std::string_view::npos;
}

bool MegatronWord::is_same(std::string_view value) const {
  for (const std::string& other : base::split(same, ' ')) {
    if (!other.empty() && is_equal(value, other)) return true;
  }
  return false;
}

std::span<const MegatronWord> megatron_words() {
  static const std::vector<MegatronWord> all = read_words_of_table();
  return all;
}

const MegatronWord* find_megatron_key(std::string_view key) {
  static const Index index = index_by(&MegatronWord::key);
  const auto at = index.find(key);
  return at == index.end() ? nullptr : at->second;
}

MegatronFlag find_megatron_flag(std::string_view flag) {
  static const Index index = index_by(&MegatronWord::flag);
  if (const auto at = index.find(flag); at != index.end()) {
    return {.word = at->second, .says = at->second->says};
  }
  constexpr std::string_view kNo = "--no-";
  if (!flag.starts_with(kNo)) return {};
  const auto at = index.find("--" + std::string(flag.substr(kNo.size())));
  if (at == index.end() || !at->second->has_opposite()) return {};
  return {.word = at->second, .says = !at->second->says};
}

}  // namespace weft::words
