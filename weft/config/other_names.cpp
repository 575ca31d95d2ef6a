#include "weft/config/other_names.h"

#include <algorithm>
#include <array>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/config/blend_list.h"
#include "weft/config/list_sum.h"

namespace weft::config {
namespace {

// Model fields that Megatron overwrites from comm_overlap at every start.
constexpr std::array<std::string_view, 9> kOtherNames{"overlap_p2p_comm",
                                                      "batch_p2p_comm",
                                                      "tp_comm_overlap",
                                                      "tp_comm_overlap_cfg",
                                                      "tp_comm_bootstrap_backend",
                                                      "overlap_moe_expert_parallel_comm",
                                                      "delay_wgrad_compute",
                                                      "defer_embedding_wgrad_compute",
                                                      "wgrad_deferral_limit"};

constexpr ShortName kShortNames[] = {
    {"world", "runtime.world_size"},
    {"tp", "model.tensor_model_parallel_size"},
    {"pp", "model.pipeline_model_parallel_size"},
    {"vpp", "model.virtual_pipeline_model_parallel_size"},
    {"cp", "model.context_parallel_size"},
    {"ep", "model.expert_model_parallel_size"},
    {"etp", "model.expert_tensor_parallel_size"},
    {"mbs", "train.micro_batch_size"},
    {"gbs", "train.global_batch_size"},
};

constexpr std::string_view kModel = "model.";

}  // namespace

bool is_other_name(std::string_view key) {
  return key.starts_with(kModel) &&
         std::ranges::find(kOtherNames, key.substr(kModel.size())) != kOtherNames.end();
}

std::span<const ShortName> short_names() { return kShortNames; }

std::string meant_key(std::string_view key) {
  for (const ShortName& shorter : kShortNames) {
    if (key == shorter.name) return std::string(shorter.key);
  }
  if (is_other_name(key)) return "comm_overlap." + std::string(key.substr(kModel.size()));
  return std::string(key);
}

std::optional<Finding> other_name_finding(std::string_view key, NameStanding standing) {
  if (!is_other_name(key)) return std::nullopt;
  const std::string meant = meant_key(key);
  const auto message = [&] {
    switch (standing) {
      case NameStanding::Sets:
        return base::text(
            "{} is another name of {}, which it sets here; Megatron Bridge would "
            "overwrite it and lose the value",
            key,
            meant);
      case NameStanding::Overruled:
        return base::text(
            "{} is another name of {}, which the same file also sets and which wins: "
            "the value of {} is lost, here as with Megatron Bridge",
            key,
            meant,
            key);
    }
    UNREACHABLE("standing {}", static_cast<int>(standing));
  };
  return Finding{.id = "C4",
                 .key = meant,
                 .from = nullptr,
                 .to = nullptr,
                 .message = message(),
                 .fix = base::text("write {}", meant)};
}

namespace {

// Megatron's window counts tokens before and behind a token, `127,0` or `(127, 0)`; -1: all. Weft
// counts the token too.
Written meant_window(const Written& value) {
  std::vector<std::string> ends;
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) ends = *list;
  if (const auto* word = std::get_if<std::string>(&value)) {
    std::string plain = *word;
    std::erase_if(plain, [](char c) { return c == '(' || c == ')' || c == '[' || c == ']'; });
    ends = base::split(plain, ',');
  }
  if (ends.size() != 2) return value;
  const auto before = base::parse_integer(base::trim(ends[0]));
  const auto behind = base::parse_integer(base::trim(ends[1]));
  if (!before || !behind || *before < -1 || (*behind != 0 && *behind != -1)) return value;
  if (*before == -1) return std::monostate{};
  return base::text("{}", *before + 1);
}

// Megatron Bridge's stages as lists of names, `[[embedding,decoder],[decoder,loss]]`, in the
// letters of a layout: `Et|tL`. Other names stay for the rule on layouts.
Written meant_layout(const Written& value) {
  std::optional<std::vector<std::string>> stages;
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) stages = *list;
  if (const auto* word = std::get_if<std::string>(&value)) stages = lists_in(*word);
  if (!stages) return value;
  constexpr std::array<std::pair<std::string_view, char>, 4> kLetters{
      {{"embedding", 'E'}, {"decoder", 't'}, {"mtp", 'm'}, {"loss", 'L'}}};
  std::string layout;
  for (std::size_t i = 0; i < stages->size(); ++i) {
    const std::optional<std::vector<std::string>> names = blend_words((*stages)[i]);
    if (!names) return value;
    if (i > 0) layout += '|';
    for (const std::string& name : *names) {
      const auto known =
          std::ranges::find(kLetters, name, [](const auto& one) { return one.first; });
      if (known == kLetters.end()) return value;
      layout += known->second;
    }
  }
  return layout;
}

// Scripts for Megatron switch these off by 0.
bool is_off_at_zero(std::string_view key) {
  return key == "checkpoint.save_interval" || key == "train.exit_interval";
}

}  // namespace

Written meant_value(std::string_view key, Written value) {
  const auto* word = std::get_if<std::string>(&value);
  if (key == "model.window_size") return meant_window(value);
  if (key == "model.pipeline_model_parallel_layout") return meant_layout(value);
  if (is_off_at_zero(key) && word != nullptr && *word == "0") return std::monostate{};
  const bool counts_evaluations = key == "train.eval_iters" || key == "train.eval_interval";
  if (counts_evaluations && std::holds_alternative<std::monostate>(value)) return "0";
  if (key == "model.moe_layer_freq" && word != nullptr) {
    std::optional<std::vector<std::string>> layers = expand_list_sum(*word);
    return layers ? Written(std::move(*layers)) : value;
  }
  if (key != "model.qk_layernorm" || word == nullptr) return value;
  const std::optional<bool> on = WordCodec<bool>::parse(*word);
  return on ? Written(std::string(*on ? "head" : "none")) : value;
}

}  // namespace weft::config
