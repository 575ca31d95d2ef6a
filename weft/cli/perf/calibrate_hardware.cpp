#include "weft/cli/perf/calibrate_hardware.h"

#include <algorithm>
#include <ctime>

#include "weft/base/casts.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/parallel/cores.h"
#include "weft/base/text.h"
#include "weft/cli/plan/hardware_folder.h"
#include "weft/cli/run/free_memory.h"
#include "weft/cli/run/machine.h"
#include "weft/config/codec.h"
#include "weft/derive/derived.h"
#include "weft/derive/gpu.h"
#include "weft/kernels/device.h"
#include "weft/measure/bench/machine_bench.h"
#include "weft/plan/price/price.h"

namespace weft::cli {
namespace {

using base::number;
using base::text;
using config::DeviceKind;

// "2026-11-17", in UTC.
std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return text("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

kernels::Gpu gpu_here() {
  const kernels::GpuReport report = kernels::gpu_report();
  if (report.gpus.empty()) throw base::SystemError(text("there is no GPU: {}", report.why_none));
  return report.gpus.front();
}

void require_cores(const config::Config& judged) {
  const std::int64_t world = derive::layout_of(judged).world;
  const std::int64_t threads = judged.runtime.threads_per_rank;
  const std::int64_t cores = std::ssize(base::usable_cores());
  if (world * threads <= cores) return;
  throw base::ConfigError(
      text("--hardware measures ranks with cores of their own, and {} ranks of {} share {} here: "
           "use fewer ranks, as in world=1 ep=1",
           world,
           base::counted(threads, "thread"),
           base::counted(cores, "core")));
}

void describe_cores(const config::Config& judged, plan::TimedMachine& machine) {
  const Machine here = this_machine();
  const std::int64_t threads = judged.runtime.threads_per_rank;
  const double ranks = number(std::max<std::int64_t>(1, here.cores / threads));
  const double all = number(here.memory_bytes);
  const double free = std::min(all, number(free_memory_bytes().value_or(here.memory_bytes)));
  machine.summary = text("{}, ranks of {}", base::shown(here.cpu), base::counted(threads, "core"));
  machine.multiprocessors = number(threads);
  machine.ranks = ranks;
  machine.memory_bytes = all / ranks;
  machine.reserved_bytes = (all - free) / ranks;
}

void describe_gpu(plan::TimedMachine& machine) {
  const kernels::GpuReport report = kernels::gpu_report();
  const kernels::Gpu& gpu = report.gpus.front();
  const double all = number(this_machine().memory_bytes), cards = number(std::ssize(report.gpus));
  machine.summary = base::shown(gpu.name);
  machine.multiprocessors = gpu.multiprocessors;
  machine.ranks = cards;
  machine.memory_bytes = number(gpu.memory_bytes);
  machine.host_memory_bytes = all / cards;
  machine.host_memory_free =
      std::min(1.0, number(free_memory_bytes().value_or(0)) / std::max(1.0, all));
  machine.host_copy_rate /= cards;
}

}  // namespace

plan::TellsRest tells_rest(const HardwareOptions& options, const config::Config& judged) {
  plan::TellsRest rest;
  for (const std::string& word : options.given) rest.given.insert(plan::parse_given(word));
  const bool is_cpu = judged.runtime.device == DeviceKind::Cpu;
  if (is_cpu && !options.like.empty()) {
    throw base::ConfigError(
        "--like is for a GPU: ranks on processor cores are like none. What one machine cannot "
        "measure is said by --given, as in --given=nic_gbps=12.5");
  }
  if (is_cpu) {
    require_cores(judged);
  } else if (!options.like.empty()) {
    rest.like = plan::find_hardware(hardware_folder(), options.like);
  } else {
    const std::string card = gpu_here().name;
    rest.like = hardware_of_card(card);
    if (!rest.like) {
      throw base::ConfigError(
          text("--hardware: one GPU does not tell what joins several, and no hardware file is of "
               "{}: name one that is like it with --like=NAME; known are {}",
               base::shown(card),
               fmt::join(plan::known_hardware(hardware_folder()), ", ")));
    }
  }
  base::require_result(options.file, options.overwrite, "by `weft calibrate --hardware`");
  return rest;
}

WrittenHardware write_hardware(const HardwareOptions& options,
                               const plan::TellsRest& rest,
                               const config::Config& judged,
                               const plan::Calibration& calibration,
                               const std::function<void(const std::string&)>& note,
                               const std::atomic<bool>& stop) {
  plan::TimedMachine machine =
      measure::bench_machine({.config = judged, .note = note, .stop = &stop});
  judged.runtime.device == DeviceKind::Cpu ? describe_cores(judged, machine)
                                           : describe_gpu(machine);
  WrittenHardware written{.measured = plan::measured_hardware(judged, calibration, machine, rest),
                          .file = options.file};
  const std::string content = plan::hardware_yaml(
      written.measured,
      text("Measured on this machine on {} by `weft calibrate --hardware` of weft {}.",
           today(),
           this_machine().version));
  try {
    const plan::Hardware hardware = plan::parse_hardware(content, options.file);
    written.planned_seconds = plan::price_step(judged, hardware).step_ms * 1e-3;
  } catch (const base::ConfigError& error) {
    throw base::ConfigError(
        text("what was measured makes no hardware file, and none is written: {}. Was the machine "
             "busy with something else? Measure again, or say a number with --given=KEY=N",
             error.what()));
  }
  base::write_whole(options.file, content);
  return written;
}

std::string to_text(const WrittenHardware& written, double measured_seconds) {
  const plan::Hardware& hardware = written.measured.hardware;
  std::string all = text("hardware  {}\n", hardware.summary);
  for (const plan::HardwareKey& key : plan::hardware_keys()) {
    all += text("  {:<24} {:>10.4g}  {}\n",
                key.key,
                key.get(hardware),
                written.measured.sources.at(std::string(key.key)));
  }
  all += text("step {:.2f} ms measured, {:.2f} ms as weft plan prices it with this profile\n",
              measured_seconds * 1e3,
              written.planned_seconds * 1e3);
  all += text("written   {}\n", written.file);
  return all;
}

base::Json to_json(const WrittenHardware& written) {
  base::Json numbers = base::Json::object(), sources = base::Json::object();
  for (const plan::HardwareKey& key : plan::hardware_keys()) {
    numbers[std::string(key.key)] = key.get(written.measured.hardware);
    sources[std::string(key.key)] = written.measured.sources.at(std::string(key.key));
  }
  return {{"file", written.file},
          {"summary", written.measured.hardware.summary},
          {"numbers", numbers},
          {"sources", sources},
          {"assumed", written.measured.assumed},
          {"planned_ms", written.planned_seconds * 1e3}};
}

}  // namespace weft::cli
