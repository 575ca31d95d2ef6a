// The programs of bench/peers, which run the work of a bench in PyTorch.
#pragma once

#include <atomic>
#include <string>
#include <vector>

namespace weft::cli {

// SystemError where PATH finds no python3, or one without that module: torch or transformers, or
// one that takes too long to say. Knows nothing where it is told to stop.
void require_module(const std::string& module, const std::atomic<bool>& stop);

// The command line that runs a script of bench/peers with these arguments.
std::vector<std::string> peer_command(const std::string& script,
                                      const std::vector<std::string>& arguments);

}  // namespace weft::cli
