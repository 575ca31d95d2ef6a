// Schedules as files: a folder with rank0.txt, rank1.txt, ...: the training graph of each pipeline
// rank, in the text of text.h. Written, changed by hand or by a tool, and read back.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/schedule/plan.h"

namespace weft::schedule {

std::filesystem::path file_of(const std::filesystem::path& folder, int pp_rank);

// Makes the folder where there is none.
void write_orders(const std::filesystem::path& folder, const std::vector<RankPlan>& plans);

// Every plan's training graph from its file, verified by nobody yet. ConfigError naming every file
// that is missing or of no pipeline rank, and the line that does not parse.
void read_orders(const std::filesystem::path& folder, std::vector<RankPlan>& plans);

// verify_plan() of graphs that were read, naming files: the first complaints, and how many more.
std::vector<std::string> verify_orders(const std::filesystem::path& folder,
                                       const std::vector<RankPlan>& plans);

// Both; what is wrong is a ConfigError.
void take_orders_from(const std::filesystem::path& folder, std::vector<RankPlan>& plans);

}  // namespace weft::schedule
