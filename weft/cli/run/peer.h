// The same model in PyTorch, run as a child process by bench/peers/torch_step.py, in two styles: as
// model code is commonly written, and tuned by hand.
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
  // SystemError where PATH finds no python3, or one without torch; see require_module().
  Peer(const config::Config& config, const std::atomic<bool>& stop);

  const std::filesystem::path& folder() const { return folder_.path(); }
  // Both styles; ends early where it is told to stop.
  void run();
  // SystemError where the losses differ: a bench verifies, then times.
  std::vector<PeerResult> compare(const std::vector<double>& losses) const;

 private:
  const config::Config& config_;
  const std::atomic<bool>& stop_;
  TemporaryFolder folder_;
  std::vector<std::pair<std::string, std::string>> outputs_;  // by style
};

}  // namespace weft::cli
