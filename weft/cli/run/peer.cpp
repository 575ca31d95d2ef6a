#include "weft/cli/run/peer.h"

#include <cmath>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/cli/run/child.h"
#include "weft/cli/run/peer_program.h"
#include "weft/derive/derived.h"

namespace weft::cli {
namespace {

using base::text;

// The losses of the first steps agree to rounding; later ones drift, as training amplifies it.
constexpr double kLossTolerance = 1e-5;
constexpr std::size_t kStepsCompared = 3;

// Relative; SystemError above the tolerance.
double largest_difference(const std::vector<double>& theirs, const std::vector<double>& ours) {
  double largest = theirs.empty() ? std::nan("") : 0;
  for (std::size_t i = 0; i < std::min({theirs.size(), ours.size(), kStepsCompared}); ++i) {
    largest = std::max(largest, std::abs(theirs[i] - ours[i]) / std::abs(ours[i]));
  }
  if (!(largest <= kLossTolerance)) {
    throw base::SystemError(
        text("the peer computes another model: losses differ by {:.2e} (at most {:.0e})",
             largest,
             kLossTolerance));
  }
  return largest;
}

}  // namespace

Peer::Peer(const config::Config& config, const std::atomic<bool>& stop)
    : config_(config), stop_(stop) {
  require_module("torch", stop);
}

void Peer::run() {
  const config::OptimizerConfig& optimizer = config_.optimizer;
  const base::Json settings{
      {"threads", config_.runtime.threads_per_rank},
      {"batch", config_.train.global_batch_size},
      {"sequence", config_.model.seq_length},
      {"lr", optimizer.lr},
      {"betas", {optimizer.adam_beta1, optimizer.adam_beta2}},
      {"eps", optimizer.adam_eps},
      {"weight_decay", optimizer.weight_decay},
      {"clip_grad", optimizer.clip_grad},
      {"aux_loss_coeff", config_.model.aux_loss_coeff(config::LoadBalancing::AuxLoss)}};
  base::write_whole(folder() / "settings.json", settings.dump());
  for (const char* style : {"modules", "tuned"}) {
    ChildResult result =
        run_child(peer_command("torch_step.py", {folder().string(), style}), {.stop = &stop_});
    if (stop_.load()) return;
    if (result.failure) throw base::SystemError(text("the peer failed: {}", *result.failure));
    outputs_.emplace_back(style, std::move(result.output));
  }
}

std::vector<PeerResult> Peer::compare(const std::vector<double>& losses) const {
  std::vector<PeerResult> results;
  for (const auto& [style, output] : outputs_) {
    const base::Json json = base::try_parse_json(output);
    if (json.is_discarded() || !json.contains("losses") || !json.contains("step_seconds")) {
      throw base::SystemError(text("the peer printed no result: '{}'", output.substr(0, 200)));
    }
    PeerResult result{.name = text("PyTorch {}, {}", json.at("version").get<std::string>(), style),
                      .step_seconds = json.at("step_seconds").get<double>()};
    result.tokens_per_second =
        static_cast<double>(derive::tokens_per_step(config_)) / result.step_seconds;
    result.loss_difference =
        largest_difference(json.at("losses").get<std::vector<double>>(), losses);
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace weft::cli
