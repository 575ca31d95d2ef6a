// The programs of bench/peers, which run the work of a bench in PyTorch.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

namespace weft::cli {

// A temporary folder for a peer's inputs, gone with its owner.
class PeerFolder {
 public:
  PeerFolder();
  ~PeerFolder();
  PeerFolder(const PeerFolder&) = delete;
  PeerFolder& operator=(const PeerFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// SystemError where PATH finds no python3, or one without that module: torch or transformers, or
// one that takes too long to say. Knows nothing where it is told to stop.
void require_module(const std::string& module, const std::atomic<bool>& stop);

// The command line that runs a script of bench/peers with these arguments.
std::vector<std::string> peer_command(const std::string& script,
                                      const std::vector<std::string>& arguments);

}  // namespace weft::cli
