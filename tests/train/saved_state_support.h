// Saved and loaded state of a run, assembled over ranks under any layout.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/train/train_support.h"
#include "weft/train/saves/checkpoints.h"

namespace weft::train {

// Bytes of every global tensor, assembled from all ranks.
using Global = std::map<std::string, std::vector<std::byte>>;

void put(Engine& engine, const Progress& progress, Global& all, std::mutex& mutex);

// Runs some steps and saves; returns the saved state.
Global saved(const config::Config& config,
             std::int64_t steps,
             devices::DeviceKind device = devices::DeviceKind::Cpu);
Global loaded(const config::Config& config, devices::DeviceKind device = devices::DeviceKind::Cpu);

}  // namespace weft::train
