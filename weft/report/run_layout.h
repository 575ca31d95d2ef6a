// Summary lines of a run: layout of its ranks, order of a step, batch size and learning rate.
#pragma once

#include <string>

#include "weft/config/config.h"

namespace weft::report {

// "pp 2, vpp 2, ep 4": pipeline sizes above 1, and always ep.
std::string layout_text(const config::ModelConfig& model);

// Order of a step in the config.
std::string order_text(const config::Config& config);

// "4 layers, 16 experts of which a token takes 2; 1.8 M parameters (0.9 M active), fp32"
std::string model_text(const config::Config& config);
// "4 ranks (threads), pp 2, ep 2, 1 thread each; order: plain"
std::string ranks_text(const config::Config& config);
// "16 sequences of 64 tokens a step (1024 tokens), in micro-batches of 2"
std::string batch_text(const config::Config& config);
// "0.001 after 10 steps of warm-up, cosine to 0.0001 at step 100"
std::string rate_text(const config::Config& config);

}  // namespace weft::report
