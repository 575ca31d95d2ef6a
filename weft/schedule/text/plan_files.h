// Schedules as files: a folder with rank0.txt, rank1.txt, ..., each the training graph of a
// pipeline rank in the format of text.h. Files are written, changed by hand or by a tool, and read
// back.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/schedule/plan.h"

namespace weft::schedule {

std::filesystem::path file_of(const std::filesystem::path& folder, int pp_rank);

// Creates the folder if it is missing.
void write_orders(const std::filesystem::path& folder, const std::vector<RankPlan>& plans);

// Reads every plan's training graph from its file, without verifying it. Throws ConfigError naming
// every file that is missing or of no pipeline rank, and the line that does not parse.
void read_orders(const std::filesystem::path& folder, std::vector<RankPlan>& plans);

// verify_plan() for graphs from files: the first errors with file names, and the number of further
// ones.
std::vector<std::string> verify_orders(const std::filesystem::path& folder,
                                       const std::vector<RankPlan>& plans);

// Reads and verifies; throws ConfigError with the errors.
void take_orders_from(const std::filesystem::path& folder, std::vector<RankPlan>& plans);

}  // namespace weft::schedule
