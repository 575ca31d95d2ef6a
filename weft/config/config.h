// WHAT RUN? The whole typed config. Each section's fields come from one list in fields/.
#pragma once

#include "weft/config/model_config.h"

namespace weft::config {

#define WEFT_FIELD(type, name, initial, meaning, unit) type name = initial;
struct CommOverlapConfig {
#include "weft/config/fields/comm_overlap.def"
};
struct TrainConfig {
#include "weft/config/fields/train.def"
};
struct OptimizerConfig {
#include "weft/config/fields/optimizer.def"
};
struct SchedulerConfig {
#include "weft/config/fields/scheduler.def"
};
struct DatasetConfig {
#include "weft/config/fields/dataset.def"
};
struct RngConfig {
#include "weft/config/fields/rng.def"
};
struct CheckpointConfig {
#include "weft/config/fields/checkpoint.def"
};
struct LoggerConfig {
#include "weft/config/fields/logger.def"
};
struct RuntimeConfig {
#include "weft/config/fields/runtime.def"
};
struct FabricConfig {
#include "weft/config/fields/fabric.def"
};
#undef WEFT_FIELD

struct Config {
  ModelConfig model;
  CommOverlapConfig comm_overlap;
  TrainConfig train;
  OptimizerConfig optimizer;
  SchedulerConfig scheduler;
  DatasetConfig dataset;
  RngConfig rng;
  CheckpointConfig checkpoint;
  LoggerConfig logger;
  RuntimeConfig runtime;
  FabricConfig fabric;
};

}  // namespace weft::config
