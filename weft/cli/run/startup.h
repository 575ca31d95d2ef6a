// Lines before the first step of a run: a summary, and details on request.
#pragma once

#include <string>
#include <vector>

#include "weft/rules/validate.h"
#include "weft/train/trainer.h"

namespace weft::cli {

enum class Opening { Short, Full };

// True if this process is one rank with pretended peers, which its output must state.
bool is_pretended(const config::Config& config);

// Model, ranks, batches, learning rate, source of the weights, overlap and offload. Full: also
// automatic settings, and parts without overlap with the reason.
std::vector<std::string> opening_lines(const rules::Verdict& verdict,
                                       const std::string& name,
                                       Opening opening);

// Keys set because the run continues a model, in at most five lines.
std::vector<std::string> continuing_lines(const std::vector<config::Finding>& automatic);

// Data, epochs and the run folder, known at the start of the run.
std::vector<std::string> start_lines(const config::Config& config, const train::RunStart& start);

// Warnings outside of the rules: a pretended world; ranks that share cores; weights whose folder
// cannot express the computation.
std::vector<std::string> opening_warnings(const config::Config& config);
// Warnings about the data.
std::vector<std::string> start_warnings(const config::Config& config, const train::RunStart& start);

}  // namespace weft::cli
