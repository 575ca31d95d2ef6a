#include "weft/cli/run/gpu_peers.h"

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/run/peer_program.h"

namespace weft::cli {
namespace {

using base::Json;
using base::text;

// Both compute in bf16 and choose experts by rounded scores. Between different models the mean loss
// of a sequence of 4096 random tokens differs by 1e-3. Between equal models it differs by less than
// 1e-4.
constexpr double kMeanLossTolerance = 2e-4;

// Number at a path of keys; nullopt: a key is missing.
std::optional<double> number_at(const Json& json, const std::vector<std::string>& path) {
  const Json* at = &json;
  for (const std::string& key : path) {
    if (!at->is_object() || !at->contains(key)) return std::nullopt;
    at = &at->at(key);
  }
  if (!at->is_number()) return std::nullopt;
  return at->get<double>();
}

const Json* element(const Json& answer, const char* list, std::size_t index) {
  if (!answer.contains(list) || !answer.at(list).is_array() || answer.at(list).size() <= index) {
    return nullptr;
  }
  return &answer.at(list).at(index);
}

std::string version_of(const Json& answer) { return answer.value("version", std::string()); }

}  // namespace

Json torch_settings(const std::vector<measure::GroupedProduct>& products,
                    const std::vector<measure::AttentionCase>& attention,
                    int rounds) {
  Json settings{{"rounds", rounds}, {"products", Json::array()}, {"attention", Json::array()}};
  for (const measure::GroupedProduct& product : products) {
    settings["products"].push_back({{"rows", product.rows}, {"n", product.n}, {"k", product.k}});
  }
  for (const auto& [name, work] : attention) {
    settings["attention"].push_back({{"batch", work.batch},
                                     {"sequence", work.sequence},
                                     {"heads", work.heads},
                                     {"groups", work.groups},
                                     {"head_width", work.head_width},
                                     {"value_width", work.value_width}});
  }
  return settings;
}

Json transformers_settings(const measure::DeviceStep& step,
                           std::int64_t sequence_length,
                           int rounds) {
  Json sequences{step.whole.sequences};
  if (step.single) sequences.push_back(step.single->sequences);
  return {{"sequence", sequence_length},
          {"rounds", rounds},
          {"tolerance", kMeanLossTolerance},
          {"losses", step.losses},
          {"sequences", sequences}};
}

std::optional<Json> ask_peer(const std::string& script,
                             const std::vector<std::string>& arguments,
                             const ChildOptions& options,
                             std::vector<std::string>& failures) {
  const ChildResult result = run_child(peer_command(script, arguments), options);
  if (result.failure) {
    failures.push_back(text("{}: {}", script, *result.failure));
    return std::nullopt;
  }
  Json answer = base::try_parse_json(result.output);
  if (!answer.is_object()) {
    failures.push_back(text("{} printed no result: '{}'", script, base::shown(result.output)));
    return std::nullopt;
  }
  return answer;
}

std::optional<PeerTime> product_time(const Json& answer,
                                     std::size_t product,
                                     const std::string& direction) {
  const Json* times = element(answer, "products", product);
  if (times == nullptr) return std::nullopt;
  const std::optional<double> seconds = number_at(*times, {direction});
  if (!seconds) return std::nullopt;
  return PeerTime{.name = text("PyTorch {} grouped_mm", version_of(answer)), .seconds = *seconds};
}

std::optional<PeerTime> attention_time(const Json& answer,
                                       std::size_t attention,
                                       tensor::Deterministic deterministic,
                                       const std::string& direction) {
  const Json* modes = element(answer, "attention", attention);
  if (modes == nullptr) return std::nullopt;
  const bool same_bits = deterministic == tensor::Deterministic::Yes && direction == "backward";
  const std::string mode = same_bits ? "deterministic" : "varying";
  if (!modes->is_object() || !modes->contains(mode)) return std::nullopt;
  std::optional<PeerTime> best;
  for (const auto& [backend, times] : modes->at(mode).items()) {
    const std::optional<double> seconds = number_at(times, {direction});
    if (!seconds) continue;
    const PeerTime time{.name = text("PyTorch {} {}", version_of(answer), backend),
                        .seconds = *seconds};
    if (backend == "cudnn") return time;
    if (!best || time.seconds < best->seconds) best = time;
  }
  return best;
}

StepPeer step_peer_of(const Json& answer, const measure::DeviceStep& step) {
  StepPeer peer{.name = text("Transformers {} + torch.compile ({}), {}",
                             version_of(answer),
                             answer.value("torch", std::string()),
                             answer.value("attention", std::string())),
                .loss_difference = number_at(answer, {"loss_difference"}).value_or(0)};
  const std::int64_t whole = step.whole.sequences;
  for (std::size_t i = 0; const Json* batch = element(answer, "batches", i); ++i) {
    const std::optional<double> seconds = number_at(*batch, {"seconds"});
    const std::int64_t sequences = batch->value("sequences", std::int64_t{0});
    if (sequences == whole) peer.whole_seconds = seconds;
    if (sequences == 1 && whole > 1) peer.single_seconds = seconds;
  }
  if (!peer.whole_seconds) {
    throw base::SystemError(text("transformers_step.py timed no batch of {}: {}",
                                 base::counted(whole, "sequence"),
                                 base::shown(answer.dump())));
  }
  return peer;
}

}  // namespace weft::cli
