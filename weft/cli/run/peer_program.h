// Programs of bench/peers, which run a bench's work in PyTorch.
#pragma once

#include <atomic>
#include <string>
#include <vector>

namespace weft::cli {

// SystemError if PATH has no python3 with this module (torch or transformers), or its import takes
// too long. Returns without a check when told to stop.
void require_module(const std::string& module, const std::atomic<bool>& stop);

// Command line for a script of bench/peers with these arguments.
std::vector<std::string> peer_command(const std::string& script,
                                      const std::vector<std::string>& arguments);

}  // namespace weft::cli
