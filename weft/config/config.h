// WHAT RUN? The whole typed config. A section's fields come from one list in fields/.
#pragma once

#include "weft/config/auto_switch.h"
#include "weft/config/model_config.h"

namespace weft::config {

#define WEFT_FIELD(type, name, initial, meaning, unit, support) type name = initial;
struct CommOverlapConfig {
#include "weft/config/fields/comm_overlap.def"
};
struct DdpConfig {
#include "weft/config/fields/ddp.def"
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
struct TokenizerConfig {
#include "weft/config/fields/tokenizer.def"
};
struct RerunStateMachineConfig {
#include "weft/config/fields/rerun_state_machine.def"
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
struct HardwareConfig {
#include "weft/config/fields/hardware.def"
};
#undef WEFT_FIELD

struct Config {
  ModelConfig model;
  CommOverlapConfig comm_overlap;
  DdpConfig ddp;
  TrainConfig train;
  OptimizerConfig optimizer;
  SchedulerConfig scheduler;
  DatasetConfig dataset;
  TokenizerConfig tokenizer;
  RngConfig rng;
  RerunStateMachineConfig rerun_state_machine;
  CheckpointConfig checkpoint;
  LoggerConfig logger;
  RuntimeConfig runtime;
  FabricConfig fabric;
  HardwareConfig hardware;
};

}  // namespace weft::config
