#include "weft/plan/hardware/measured_hardware.h"

#include <gtest/gtest.h>

#include <cmath>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/plan/price/price.h"

namespace weft::plan {
namespace measured_hardware_test {

const std::filesystem::path kFolder = std::filesystem::path(WEFT_SOURCE_DIR) / "hardware";

// Experts on two ranks, in fp32.
config::Config small_run() {
  config::Config config;
  config::ModelConfig& model = config.model;
  model.num_layers = 4;
  model.hidden_size = 256;
  model.ffn_hidden_size = 512;
  model.num_attention_heads = 4;
  model.num_query_groups = 1;
  model.kv_channels = 64;
  model.seq_length = 256;
  model.vocab_size = 128;
  model.num_moe_experts = 8;
  model.moe_ffn_hidden_size = 96;
  model.moe_router_topk = 4;
  model.expert_model_parallel_size = 2;
  config.train.micro_batch_size = 1;
  config.train.global_batch_size = 32;
  config.runtime.world_size = 2;
  return config;
}

// Machine defined by its rates: the program does the work that the planner counts.
Calibration made_up() {
  return {.rates = {.product_flop = 1 / 40e9,
                    .attention_forward_flop = 1 / 20e9,
                    .attention_backward_flop = 1 / 25e9,
                    .memory_byte = 1 / 20e9,
                    .memory_call = 5e-6,
                    .link_byte = 1 / 4e9,
                    .link_call = 3e-5,
                    .beside_communication = 0.08},
          .nodes = {}};
}

TimedMachine cores() {
  TimedMachine machine{.summary = "some cores",
                       .device = config::DeviceKind::Cpu,
                       .multiprocessors = 1,
                       .ranks = 2,
                       .memory_bytes = 12e9,
                       .reserved_bytes = 1e9,
                       .copy_rate = 30e9,
                       .link_rate = 15e9,
                       .link_rate_both = 10e9,
                       .launch_seconds = 1e-6};
  machine.flop_rate[DType::F32] = 50e9;
  machine.flop_rate[DType::BF16] = 30e9;
  for (const double rows : {8, 32, 128}) {
    machine.products.push_back(
        {.m = rows, .n = 512, .k = 512, .seconds = 2 * rows * 512 * 512 / 45e9});
  }
  return machine;
}

TimedMachine card() {
  TimedMachine machine = cores();
  machine.device = config::DeviceKind::Cuda;
  machine.multiprocessors = 132;
  machine.memory_bytes = 150e9;
  machine.host_memory_bytes = 200e9;
  machine.host_memory_free = 0.9;
  machine.host_copy_rate = 60e9;
  machine.copy_rate = 4e12;
  machine.flop_rate = {};
  machine.flop_rate[DType::F32] = 50e12;
  machine.flop_rate[DType::BF16] = 780e12;
  return machine;
}

MeasuredHardware measured_cores(const TellsRest& rest = {}) {
  return measured_hardware(small_run(), made_up(), cores(), rest);
}

Hardware read_back(const MeasuredHardware& measured) {
  return parse_hardware(hardware_yaml(measured, "Measured by a test."), "here.yaml");
}

std::string complaint_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const base::ConfigError& error) {
    return error.what();
  }
  return "";
}

// Price of a step by the file, relative to the step by the rates.
double over_calibrated(const config::Config& config, const Hardware& hardware) {
  const double seconds = calibrated_step(config, made_up()).seconds;
  return price_step(config, hardware).step_ms * 1e-3 / seconds;
}

TEST(MeasuredHardware, TheFileIsReadBackAndSaysWhereEachNumberIsFrom) {
  const MeasuredHardware measured = measured_cores();
  const Hardware hardware = read_back(measured);
  EXPECT_EQ(hardware.device, config::DeviceKind::Cpu);
  EXPECT_EQ(hardware.summary, "some cores");
  for (const HardwareKey& key : hardware_keys()) {
    const double value = key.get(measured.hardware);
    EXPECT_NEAR(key.get(hardware), value, 1e-4 * std::abs(value)) << key.key;
    EXPECT_FALSE(measured.sources.at(std::string(key.key)).empty()) << key.key;
  }
  EXPECT_EQ(hardware.memory_gbps, 30);
  EXPECT_EQ(hardware.gpus_per_node, 2);
  EXPECT_EQ(hardware.peak(DType::F32), 50e9);
  EXPECT_EQ(hardware.host_room(), 0);
  EXPECT_NEAR(hardware.dispatch_sms, 0.08, 1e-9);
}

TEST(MeasuredHardware, AStepIsPricedAsTheRunItWasMadeOf) {
  const Hardware hardware = read_back(measured_cores());
  EXPECT_NEAR(over_calibrated(small_run(), hardware), 1, 0.05);
}

TEST(MeasuredHardware, OtherRunsArePricedByIt) {
  const Hardware hardware = read_back(measured_cores());
  config::Config wide = small_run();
  wide.model.hidden_size = 512;
  wide.model.num_attention_heads = 8;
  EXPECT_NEAR(over_calibrated(wide, hardware), 1, 0.1);
  config::Config alone = small_run();
  alone.model.expert_model_parallel_size = 1;
  alone.runtime.world_size = 1;
  alone.train.micro_batch_size = 4;
  EXPECT_NEAR(over_calibrated(alone, hardware), 1, 0.1);
}

TEST(MeasuredHardware, ProductsThatAreFasterThanTheMeasuredPeakRaiseIt) {
  TimedMachine slow = cores();
  slow.flop_rate[DType::F32] = 35e9;
  const MeasuredHardware measured = measured_hardware(small_run(), made_up(), slow, {});
  EXPECT_GT(measured.hardware.peak(DType::F32), 39e9);
  EXPECT_NE(measured.sources.at("peak_fp32_tflops").find("the run"), std::string::npos);
  EXPECT_NEAR(over_calibrated(small_run(), read_back(measured)), 1, 0.05);
}

TEST(MeasuredHardware, WhatOneMachineCannotTellIsMarkedOrGiven) {
  const MeasuredHardware alone = measured_cores();
  EXPECT_EQ(alone.assumed, (std::vector<std::string>{"nic_gbps", "nic_share", "nic_latency_us"}));
  EXPECT_TRUE(alone.sources.at("nic_gbps").starts_with("assumed: "));
  const MeasuredHardware told =
      measured_cores({.like = {}, .given = {{"nic_gbps", 2.5}, {"nic_latency_us", 40}}});
  EXPECT_EQ(told.assumed, std::vector<std::string>{"nic_share"});
  EXPECT_EQ(told.hardware.nic_gbps, 2.5);
  EXPECT_EQ(told.sources.at("nic_gbps"), "given on the command line");
}

TEST(MeasuredHardware, ARunThatExchangesNothingLeavesLinksAssumed) {
  config::Config alone = small_run();
  alone.model.expert_model_parallel_size = 1;
  alone.runtime.world_size = 1;
  const MeasuredHardware measured = measured_hardware(alone, made_up(), cores(), {});
  EXPECT_NE(std::ranges::find(measured.assumed, "exchange_share"), measured.assumed.end());
  EXPECT_NE(measured.sources.at("exchange_share").find("ep=2"), std::string::npos);
}

TEST(MeasuredHardware, ACardTakesWhatJoinsSeveralFromOneLikeIt) {
  config::Config config = small_run();
  config.model.params_dtype = base::DType::BF16;
  config.model.hidden_size = 4096;
  config.model.moe_ffn_hidden_size = 4096;
  config.model.num_attention_heads = 32;
  config.model.num_query_groups = 8;
  config.model.kv_channels = 128;
  config.model.seq_length = 8192;
  Calibration calibration = made_up();
  calibration.rates.product_flop = 1 / 500e12;
  calibration.rates.attention_forward_flop = calibration.rates.attention_backward_flop = 1 / 300e12;
  calibration.rates.memory_byte = 1 / 3e12;
  calibration.rates.memory_call = 3e-6;
  const Hardware h200 = find_hardware(kFolder, "h200");
  const MeasuredHardware measured =
      measured_hardware(config, calibration, card(), {.like = h200, .given = {}});
  const Hardware hardware = read_back(measured);
  EXPECT_EQ(hardware.device, config::DeviceKind::Cuda);
  EXPECT_EQ(hardware.nvlink_gbps, h200.nvlink_gbps);
  EXPECT_EQ(hardware.nvlink_domain, h200.nvlink_domain);
  EXPECT_EQ(measured.sources.at("nvlink_gbps"), "not measured: as of h200");
  EXPECT_EQ(hardware.peak(DType::BF16), 780e12);
  EXPECT_LT(hardware.gemm_rate(DType::BF16), 780e12);
  EXPECT_GT(hardware.gemm_rate(DType::BF16), 450e12);
  EXPECT_EQ(hardware.peak(DType::F8E4M3), 0);
  EXPECT_EQ(hardware.memory_gbps, 4000);
  EXPECT_GT(hardware.host_room(), 0);
  EXPECT_NE(
      complaint_of([&] { measured_hardware(config, calibration, card(), {}); }).find("--like=NAME"),
      std::string::npos);
}

TEST(MeasuredHardware, AbsurdMeasurementsMakeNoFile) {
  const auto said = [](const auto& change) {
    TimedMachine machine = cores();
    change(machine);
    return complaint_of([&] { read_back(measured_hardware(small_run(), made_up(), machine, {})); });
  };
  EXPECT_EQ(said([](TimedMachine&) {}), "");
  EXPECT_NE(
      said([](TimedMachine& machine) { machine.copy_rate = 0; }).find("copies were measured at 0"),
      std::string::npos);
  EXPECT_NE(said([](TimedMachine& machine) { machine.copy_rate = std::nan(""); }), "");
  EXPECT_NE(said([](TimedMachine& machine) { machine.copy_rate = 1e3; }).find("memory_gbps"),
            std::string::npos);
  EXPECT_NE(said([](TimedMachine& machine) { machine.flop_rate = {}; }).find("products in fp32"),
            std::string::npos);
  EXPECT_NE(said([](TimedMachine& machine) { machine.reserved_bytes = 13e9; }).find("reserved_gb"),
            std::string::npos);
}

TEST(MeasuredHardware, GivenNumbersAreKeysInTheirRange) {
  EXPECT_EQ(parse_given("nic_gbps=12.5"), (std::pair<std::string, double>("nic_gbps", 12.5)));
  const auto said = [](const char* word) { return complaint_of([&] { parse_given(word); }); };
  EXPECT_NE(said("nic_gbp=3").find("did you mean 'nic_gbps'?"), std::string::npos);
  EXPECT_NE(said("nic_gbps").find("as in --given=nic_gbps=25"), std::string::npos);
  EXPECT_NE(said("nic_gbps=fast").find("is a number from"), std::string::npos);
  EXPECT_NE(said("nic_gbps=-1").find("is a number from"), std::string::npos);
}

}  // namespace measured_hardware_test
}  // namespace weft::plan
