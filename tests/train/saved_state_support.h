// What a run saves, and what one that loads it has, as one whatever the layout.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/train/train_support.h"
#include "weft/train/saves/checkpoints.h"

namespace weft::train {

// Every global tensor's bytes, put together from what all ranks hold.
using Global = std::map<std::string, std::vector<std::byte>>;

void put(Engine& engine, const Progress& progress, Global& all, std::mutex& mutex);

// Some steps, then a save; what was saved.
Global saved(const config::Config& config,
             std::int64_t steps,
             devices::DeviceKind device = devices::DeviceKind::Cpu);
Global loaded(const config::Config& config, devices::DeviceKind device = devices::DeviceKind::Cpu);

}  // namespace weft::train
