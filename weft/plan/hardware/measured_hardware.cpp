#include "weft/plan/hardware/measured_hardware.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/plan/hardware/wire_time.h"
#include "weft/plan/price/run_seconds.h"

namespace weft::plan {
namespace {

using base::text;
using config::DeviceKind;

constexpr double kGiga = 1e9, kTera = 1e12;
constexpr double kLeastShare = 0.01;  // smallest share in a hardware file

// Least share of the run's memory time that bytes must explain to determine a rate.
constexpr double kLeastByBytes = 0.05;
constexpr double kNearly = 1.001;
// Largest speed of a run's products relative to one large product alone.
constexpr double kMostFaster = 1.5;

const HardwareKey& key_of(const std::string& name) {
  const std::vector<HardwareKey>& all = hardware_keys();
  const auto found = std::ranges::find(all, name, &HardwareKey::key);
  if (found != all.end()) return *found;
  std::vector<std::string> names;
  for (const HardwareKey& key : all) names.emplace_back(key.key);
  const auto best = base::nearest(name, names);
  throw base::ConfigError(text("--given={}: a hardware file has no such number{}",
                               base::shown(name),
                               best ? text(": did you mean '{}'?", *best) : ""));
}

// Share in (0, 1] at which the decreasing `seconds_at` equals `seconds`; otherwise an end of the
// range.
template <typename SecondsAt>
double share_for(double seconds, const SecondsAt& seconds_at) {
  constexpr int kHalvings = 40;
  double low = kLeastShare, high = 1;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (seconds_at(middle) > seconds ? low : high) = middle;
  }
  return high;
}

double clipped(double share) { return std::clamp(share, kLeastShare, 1.0); }

// Numbers of a profile with their sources.
class Profile {
 public:
  Profile(const config::Config& config,
          const Calibration& calibration,
          const TimedMachine& machine,
          const TellsRest& rest)
      : config_(config),
        calibration_(calibration),
        machine_(machine),
        rest_(rest),
        is_cpu_(machine.device == DeviceKind::Cpu),
        number_(number_of(config.model)),
        seconds_(run_seconds(config, calibration)),
        kernels_(run_kernels(config)) {}

  MeasuredHardware make() {
    require_rates();
    set("host_core_gbps", 0, "host_memory_gbps was measured with all cores of a rank");
    set("gemm_share_head", 0, "as gemm_share_bf16: Weft computes in no fewer bits");
    result_.hardware.summary = machine_.summary;
    result_.hardware.device = machine_.device;
    result_.hardware.program = Program::Weft;
    ceilings();
    if (is_cpu_) {
      places_of_cores();
      tiles_of_cores();
    } else {
      host_of_gpu();
      as_of_like();
    }
    // Given numbers precede numbers derived from them.
    take_given();
    run();
    if (is_cpu_) links_of_cores();
    take_given();
    return std::move(result_);
  }

 private:
  Hardware& hardware() { return result_.hardware; }

  void require_rates() const {
    const std::pair<const char*, double> rates[] = {
        {"products in fp32", machine_.flop_rate[DType::F32]},
        {"products in bf16", machine_.flop_rate[DType::BF16]},
        {"copies", machine_.copy_rate},
        {"transfers between device and host", machine_.link_rate}};
    for (const auto& [what, rate] : rates) {
      if (rate > 0 && std::isfinite(rate)) continue;
      throw base::ConfigError(text("{} were measured at {:g} a second", what, rate));
    }
  }

  void set(const std::string& key, double value, std::string source) {
    key_of(key).set(hardware(), value);
    result_.sources[key] = std::move(source);
    std::erase(result_.assumed, key);
  }

  void assume(const std::string& key, double value, const std::string& why) {
    set(key, value, "assumed: " + why);
    result_.assumed.push_back(key);
  }

  void take_given() {
    for (const auto& [key, value] : rest_.given) set(key, value, "given on the command line");
  }

  void ceilings() {
    set("sms",
        machine_.multiprocessors,
        is_cpu_ ? "cores of a rank (runtime.threads_per_rank)" : "as the device tells them");
    set("memory_gb",
        machine_.memory_bytes / kGiga,
        is_cpu_ ? "of the machine, a rank's share" : "as CUDA counts it");
    set("memory_gbps", machine_.copy_rate / kGiga, "measured: a copy, read and written");
    for (const DType number : {DType::F32, DType::BF16}) {
      set(text("peak_{}_tflops", name_of(number)),
          machine_.flop_rate[number] / kTera,
          "measured: a large square product");
    }
    for (const DType number : {DType::F8E4M3, DType::MXFP8, DType::NVFP4}) {
      set(text("peak_{}_tflops", name_of(number)), 0, "Weft computes no such products");
      set(text("gemm_share_{}", name_of(number)), 0, "the same");
    }
    set("sustained_share", 1, "peaks are measured, not advertised");
    set("launch_us",
        machine_.launch_seconds / kMicroseconds,
        "measured: the host's time for a kernel");
    const double link = machine_.link_rate;
    set("host_link_gbps",
        link / kGiga,
        is_cpu_ ? "ranks are in the host's memory: a copy in it" : "measured: a transfer");
    set("host_link_share",
        clipped(machine_.link_rate_both / link),
        is_cpu_ ? "the same" : "measured: with both ways at work");
  }

  void places_of_cores() {
    set("gpus_per_node", machine_.ranks, "ranks whose cores this machine has");
    set("nvlink_domain", machine_.ranks, "the ranks of this machine");
    set("reserved_gb",
        machine_.reserved_bytes / kGiga,
        "measured: in use by others, a rank's share");
    set("host_memory_gb", 0, "ranks are in the host's memory: nothing can be offloaded");
    set("host_memory_free", 0, "the same");
    set("host_memory_gbps", machine_.copy_rate / kGiga, "as memory_gbps");
    set("host_memory_share", 1, "the same");
  }

  void host_of_gpu() {
    set("host_memory_gb",
        machine_.host_memory_bytes / kGiga,
        "memory of this machine, a GPU's share");
    set("host_memory_free", machine_.host_memory_free, "measured: what is free of it now");
    set("host_memory_gbps",
        machine_.host_copy_rate / kGiga,
        "measured: copies by all cores, a GPU's share");
    set("host_memory_share", 1, "measured, not advertised");
  }

  // Numbers that one GPU in one process cannot show.
  void as_of_like() {
    if (!rest_.like) {
      throw base::ConfigError(
          "one GPU does not tell what joins several, and this one is of no kind that has a "
          "hardware file: name one that is like it with --like=NAME, as in --like=h200");
    }
    const Hardware& like = *rest_.like;
    for (const char* key : {"gpus_per_node",
                            "nvlink_domain",
                            "nvlink_gbps",
                            "nic_gbps",
                            "nvlink_share",
                            "exchange_share",
                            "nic_share",
                            "nvlink_latency_us",
                            "nic_latency_us",
                            "dispatch_sms",
                            "tile_rows",
                            "tile_columns",
                            "tile_us",
                            "reserved_gb"}) {
      set(key, key_of(key).get(like), text("not measured: as of {}", like.name));
    }
  }

  // Finds the tile size of a core and the cost of a tile.
  void tiles_of_cores() {
    constexpr double kTileSizes[] = {1, 2, 4, 8, 16, 32, 64, 128};
    constexpr double kLeastUs = 1e-4, kMostUs = 50, kStep = 1.15;
    Hardware tried = hardware();
    tried.gemm_share.by_dtype.fill(1);
    tried.memory_share = 1;
    tried.kernel_us = 0;
    double best = std::numeric_limits<double>::infinity();
    for (const double size : kTileSizes) {
      for (double us = kLeastUs; us < kMostUs; us *= kStep) {
        tried.tile_rows = tried.tile_columns = size;
        tried.tile_us = us == kLeastUs ? 0 : us;
        const double error = tile_error(tried);
        if (error >= best) continue;
        best = error;
        hardware().tile_rows = hardware().tile_columns = size;
        hardware().tile_us = tried.tile_us;
      }
    }
    const std::string source = text("fitted to measured products of {:g} to {:g} rows",
                                    machine_.products.front().m,
                                    machine_.products.back().m);
    for (const char* key : {"tile_rows", "tile_columns", "tile_us"}) {
      result_.sources[key] = source;
    }
  }

  double tile_error(const Hardware& tried) const {
    double error = 0;
    for (const TimedProduct& product : machine_.products) {
      const Kernel kernel{.kind = KernelKind::Product,
                          .number = number_,
                          .m = product.m,
                          .n = product.n,
                          .k = product.k};
      const double ratio = std::log(device_seconds(kernel, tried) / product.seconds);
      error += ratio * ratio;
    }
    return error;
  }

  // Time of one class of the step's kernels on the current profile.
  double kernel_seconds(KernelKind kind, const Hardware& on) const {
    double seconds = 0;
    for (const Kernel& kernel : kernels_.kernels) {
      if (kernel.kind == kind) seconds += device_seconds(kernel, on);
    }
    return seconds * kernels_.micro_batches;
  }

  double attention_flops(schedule::Direction direction) const {
    double flops = 0;
    for (const Kernel& kernel : kernels_.kernels) {
      const bool counts = kernel.kind == KernelKind::Attention && kernel.direction == direction;
      if (counts) flops += kernel.flops;
    }
    return flops * kernels_.micro_batches;
  }

  void run() {
    memory_of_run();
    products_of_run();
    attention_of_run();
  }

  void memory_of_run() {
    double bytes = 0, kernels = 0;
    for (const Kernel& kernel : kernels_.kernels) {
      if (kernel.kind != KernelKind::Memory) continue;
      bytes += kernel.bytes * kernels_.micro_batches;
      kernels += kernels_.micro_batches;
    }
    const double all = seconds_.memory_bytes + seconds_.memory_calls;
    if (!(all > 0) || !(bytes > 0)) {
      throw base::ConfigError(
          "the trace of the run has no operations that move memory: use a larger model");
    }
    // Bytes take at least the time of a copy; the rest goes to the calls.
    const bool is_told = seconds_.memory_bytes > kLeastByBytes * all;
    const double least = std::min(all, bytes / machine_.copy_rate);
    const double by_bytes = std::max(least, is_told ? seconds_.memory_bytes : all);
    set("kernel_us",
        (all - by_bytes) / kernels / kMicroseconds,
        "the run: what its calls took, over the kernels that a plan counts");
    set("memory_share",
        clipped(bytes / by_bytes / machine_.copy_rate),
        "the run: bytes that a plan counts, over what operations on them took");
  }

  void attention_of_run() {
    const DType wide = workload_of(config_).wide;
    const double peak = hardware().peak(wide);
    const auto share = [&](double flops, double seconds) {
      return seconds > 0 ? clipped(flops / seconds / peak) : 0;
    };
    set("attention_forward_share",
        share(attention_flops(schedule::Direction::F), seconds_.attention_forward),
        text("the run, of peak_{}_tflops", name_of(wide)));
    set("attention_backward_share",
        share(attention_flops(schedule::Direction::D), seconds_.attention_backward),
        text("the run, of peak_{}_tflops", name_of(wide)));
  }

  // Fits tile costs to the run's products. If products are faster than at the measured peak, tiles
  // cost less than those timed alone. If that does not suffice, the run exceeds the rate of the
  // large product.
  void products_of_run() {
    Hardware tried = hardware();
    const auto seconds = [&] { return kernel_seconds(KernelKind::Product, tried); };
    const double share = share_for(seconds_.products, [&](double each) {
      tried.gemm_share[number_] = each;
      return seconds();
    });
    tried.gemm_share[number_] = share;
    if (seconds() > kNearly * seconds_.products) {
      const double whole = tried.tile_us;
      const double less = share_for(-seconds_.products, [&](double each) {
        tried.tile_us = whole * (each - kLeastShare);
        return -seconds();
      });
      tried.tile_us = whole * (less - kLeastShare);
      set("tile_us", tried.tile_us, "the run: what its products took");
    }
    if (seconds() > kNearly * seconds_.products) {
      set(text("peak_{}_tflops", name_of(number_)),
          hardware().peak(number_) / kTera * std::min(kMostFaster, seconds() / seconds_.products),
          "the run, which is faster than a large square product");
    }
    for (const DType number : {DType::F32, DType::BF16}) {
      const bool is_own = number == number_;
      if (hardware().peak(number) <= 0) {
        set(text("gemm_share_{}", name_of(number)), 0, "no such products");
      } else {
        set(text("gemm_share_{}", name_of(number)),
            share,
            is_own ? std::string("the run: what its products took")
                   : text("not measured: as of {}", name_of(number_)));
      }
    }
  }

  // Ranks of one machine exchange through copies in its memory.
  void links_of_cores() {
    const double copy = machine_.copy_rate / 2;
    set("nvlink_gbps", copy / kGiga, "a copy between ranks, each way: half of memory_gbps");
    const Workload work = workload_of(config_);
    const RankGroup group = group_of(work.ep * work.etp, 1, hardware());
    const double all = seconds_.dispatch_calls + seconds_.dispatch_bytes;
    if (all > 0 && group.ranks > 1 && config_.model.experts() > 0) {
      const DispatchRows rows = dispatch_rows(config_.model, group);
      const double width = base_width();
      const double bytes = (rows.inside + rows.between) * work.own_tokens * work.element * width;
      const double latency = std::min(seconds_.dispatch_calls, (1 - kLeastByBytes) * all);
      const double share = clipped(bytes * seconds_.dispatches / (all - latency) / copy);
      const std::string source = "the run: dispatches and combines";
      set("nvlink_share", share, source);
      set("exchange_share", share, source);
      set("nvlink_latency_us", latency / seconds_.dispatches / kMicroseconds, source);
    } else {
      const std::string why = "the run exchanged nothing; one with ep=2 measures it";
      assume("nvlink_share", 1, why);
      assume("exchange_share", 1, why);
      assume("nvlink_latency_us", 0, why);
    }
    const std::string why = "one machine has no network; as inside it, --given=KEY=N says another";
    assume("nic_gbps", hardware().nvlink_gbps, why);
    assume("nic_share", hardware().exchange_share, why);
    assume("nic_latency_us", hardware().nvlink_latency_us, why);
    const double slower = calibration_.rates.beside_communication;
    set("dispatch_sms",
        std::min(slower, kMostOfCompute) * machine_.multiprocessors,
        "the run: what compute loses beside communication, in cores");
  }

  double base_width() const {
    const config::ModelConfig& model = config_.model;
    return static_cast<double>(model.moe_latent_size.value_or(model.hidden_size));
  }

  static constexpr double kMostOfCompute = 0.9;

  const config::Config& config_;
  const Calibration& calibration_;
  const TimedMachine& machine_;
  const TellsRest& rest_;
  const bool is_cpu_;
  const DType number_;
  const RunSeconds seconds_;
  const RunKernels kernels_;
  MeasuredHardware result_;
};

}  // namespace

MeasuredHardware measured_hardware(const config::Config& config,
                                   const Calibration& calibration,
                                   const TimedMachine& machine,
                                   const TellsRest& rest) {
  return Profile(config, calibration, machine, rest).make();
}

std::string hardware_yaml(const MeasuredHardware& measured, const std::string& made) {
  std::string all = text("# {}\n# {}\n", measured.hardware.summary, made);
  all +=
      "# Lines are `key: number`; behind each is where it is from. docs/plan.md explains them.\n";
  all += text("summary: {}\ndevice: {}\n",
              measured.hardware.summary,
              config::word(measured.hardware.device));
  if (measured.hardware.device == DeviceKind::Cuda) {
    all += text("program: {} # whose run was measured\n", word(Program::Weft));
  }
  for (const HardwareKey& key : hardware_keys()) {
    all += text("{}: {:.5g} # {}\n",
                key.key,
                key.get(measured.hardware),
                measured.sources.at(std::string(key.key)));
  }
  return all;
}

std::pair<std::string, double> parse_given(const std::string& written) {
  const std::size_t equals = written.find('=');
  if (equals == std::string::npos) {
    throw base::ConfigError(
        text("--given={}: a key and its number are wanted, as in "
             "--given=nic_gbps=25",
             base::shown(written)));
  }
  const std::string name = written.substr(0, equals), value = written.substr(equals + 1);
  const HardwareKey& key = key_of(name);
  const std::optional<double> number = base::parse_number(value);
  if (!number || !(*number >= key.least && *number <= key.most)) {
    throw base::ConfigError(text("--given={}: {} is a number from {:g} to {:g}",
                                 base::shown(written),
                                 key.key,
                                 key.least,
                                 key.most));
  }
  return {name, *number};
}

}  // namespace weft::plan
