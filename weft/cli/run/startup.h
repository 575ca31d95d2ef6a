// What a run says before its first step: first what a person wants to know, the rest when asked.
#pragma once

#include <string>
#include <vector>

#include "weft/rules/validate.h"
#include "weft/train/trainer.h"

namespace weft::cli {

enum class Opening { Short, Full };

// Whether this process is one rank whose peers are only taken to be there: what it prints says so.
bool is_pretended(const config::Config& config);

// The model, its ranks, batches, learning rate and where its weights come from; what overlaps, and
// what is offloaded. With
// Full also what was set automatically and what does not overlap, and why.
std::vector<std::string> opening_lines(const rules::Verdict& verdict,
                                       const std::string& name,
                                       Opening opening);

// What was set because the run continues a model, in at most five lines.
std::vector<std::string> continuing_lines(const std::vector<config::Finding>& automatic);

// Data, epochs and the run folder, which are known when the run begins.
std::vector<std::string> start_lines(const config::Config& config, const train::RunStart& start);

// What deserves a second look and is no rule's: a pretended world; ranks that share cores; weights
// whose folder cannot say what was computed.
std::vector<std::string> opening_warnings(const config::Config& config);
// The same about the data.
std::vector<std::string> start_warnings(const config::Config& config, const train::RunStart& start);

}  // namespace weft::cli
