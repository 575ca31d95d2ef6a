// starts.jsonl of a run folder: when the run was started, and what it ran on. A run that went on
// from a checkpoint in the same folder has several.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace weft::report {

struct Start {
  std::int64_t step = 0;  // steps done before
  std::string time;       // in UTC: "2026-11-19T20:13:51Z"
  std::string version, build;
  std::string cpu;
  std::int64_t cores = 0;         // that the ranks of rank 0's machine may use; 0: not known
  std::int64_t memory_bytes = 0;  // of its machine
  std::string gpu;                // empty: the run used none
};

// One more line. A run that begins at step 0 replaces what another run left. SystemError where the
// file cannot be written.
void keep_start(const std::filesystem::path& run_folder, const Start& start);

// In their order; what cannot be read is passed over.
std::vector<Start> read_starts(const std::filesystem::path& run_folder);

// "AMD EPYC, 2 cores, 15.6 GiB; NVIDIA H200"
std::string machine_text(const Start& start);

}  // namespace weft::report
