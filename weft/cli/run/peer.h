// Same model in PyTorch, run as a child process by bench/peers/torch_step.py, in two styles: common
// model code, and hand-tuned code.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "weft/cli/run/temporary_folder.h"
#include "weft/config/config.h"

namespace weft::cli {

struct PeerResult {
  std::string name;  // "PyTorch 1.13.1, tuned"
  double step_seconds = 0;
  double tokens_per_second = 0;
  double loss_difference = 0;  // largest relative difference of the first steps' losses
};

class Peer {
 public:
  // SystemError if PATH has no python3 with torch; see require_module().
  Peer(const config::Config& config, const std::atomic<bool>& stop);

  const std::filesystem::path& folder() const { return folder_.path(); }
  // Runs both styles; stops early when told to.
  void run();
  // SystemError if the losses differ: a bench verifies before timing.
  std::vector<PeerResult> compare(const std::vector<double>& losses) const;

 private:
  const config::Config& config_;
  const std::atomic<bool>& stop_;
  TemporaryFolder folder_;
  std::vector<std::pair<std::string, std::string>> outputs_;  // by style
};

}  // namespace weft::cli
