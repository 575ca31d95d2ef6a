#include "weft/cli/peer.h"

#include <sys/wait.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/derive/derived.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using base::text;

// The losses of the first steps agree to rounding; later ones drift, as training amplifies it.
constexpr double kLossTolerance = 1e-5;
constexpr std::size_t kStepsCompared = 3;

// The one that PATH finds, as tools/setup.sh peers asks it.
constexpr const char* kPython = "python3";

// Its exit code, or 128 and the number of the signal that ended it.
int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) base::throw_errno("cannot start the peer");
  std::string all;
  std::array<char, 4096> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe))
    all.append(part.data(), got);
  const int status = ::pclose(pipe);
  if (status != 0) {
    throw base::SystemError(
        text("the peer failed with exit code {}: {}", code_of(status), command));
  }
  return all;
}

fs::path make_temporary_folder() {
  std::string pattern = (fs::temp_directory_path() / "weft-peer-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) base::throw_errno("cannot make a temporary folder");
  return pattern;
}

// Relative; SystemError where it is too large.
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

void require_torch() {
  if (std::system(text("{} -c 'import torch' > /dev/null 2>&1", kPython).c_str()) != 0) {
    throw base::SystemError(
        text("--peer needs PyTorch, and the {} that PATH finds has no module 'torch': install it "
             "(tools/setup.sh peers, or python3-torch of Debian), or leave --peer out",
             kPython));
  }
}

}  // namespace

Peer::Peer(const config::Config& config) : config_(config) {
  require_torch();
  folder_ = make_temporary_folder();
}

Peer::~Peer() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
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
  base::write_whole(folder_ / "settings.json", settings.dump());
  const fs::path script = recipes_folder().parent_path() / "bench" / "peers" / "torch_step.py";
  for (const char* style : {"modules", "tuned"}) {
    outputs_.emplace_back(
        style,
        output_of(text("{} '{}' '{}' {}", kPython, script.string(), folder_.string(), style)));
  }
}

std::vector<PeerResult> Peer::compare(const std::vector<double>& losses) const {
  std::vector<PeerResult> results;
  for (const auto& [style, output] : outputs_) {
    const base::Json json = base::Json::parse(output, nullptr, false);
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
