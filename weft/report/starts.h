// starts.jsonl of a run folder: time and hardware of each start. A run that resumed in its folder
// has several starts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace weft::report {

struct Start {
  std::int64_t step = 0;  // steps done before
  std::string time;       // UTC: "2026-11-19T20:13:51Z"
  std::string version, build;
  std::string cpu;
  std::int64_t cores = 0;         // cores for the ranks of rank 0's machine; 0: unknown
  std::int64_t memory_bytes = 0;  // memory of its machine
  std::string gpu;                // empty: no GPU
};

// Appends a line. A run from step 0 replaces the starts of another run. SystemError for a file that
// cannot be written.
void keep_start(const std::filesystem::path& run_folder, const Start& start);

// In order; skips unreadable lines.
std::vector<Start> read_starts(const std::filesystem::path& run_folder);

// "AMD EPYC, 2 cores, 15.6 GiB; NVIDIA H200"
std::string machine_text(const Start& start);

}  // namespace weft::report
