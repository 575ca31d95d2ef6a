#include "weft/plan/hardware/hardware.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/config/codec.h"

namespace weft::plan {
namespace {

namespace fs = std::filesystem;
using base::text;

constexpr std::size_t kLargestHardwareFile = 64u << 10;
constexpr std::string_view kDeviceKey = "device", kProgramKey = "program";
constexpr std::string_view kOfWeft = "weft_";
constexpr std::string_view kProgramWords[kPrograms] = {"megatron", "weft"};

HardwareKey told(std::string_view key, double Hardware::*field, double least, double most) {
  return {.key = key, .field = field, .least = least, .most = most};
}

HardwareKey fitted(std::string_view key, double Hardware::*field, double least, double most) {
  return {.key = key, .field = field, .least = least, .most = most, .is_calibrated = true};
}

HardwareKey optional(std::string_view key, double Hardware::*field, double least, double most) {
  HardwareKey one = fitted(key, field, least, most);
  one.is_optional = true;
  return one;
}

HardwareKey peak_of(std::string_view key, DType number) {
  return {.key = key, .row = &Hardware::peak_tflops, .number = number, .least = 0, .most = 1e6};
}

HardwareKey share_of(std::string_view key, DType number) {
  return {.key = key,
          .row = &Hardware::gemm_share,
          .number = number,
          .least = 0,
          .most = 1,
          .is_calibrated = true};
}

// Key and value of a line without its comment; an empty key: nothing on the line.
struct HardwareLine {
  std::string key, value;
};

HardwareLine read_line(std::string_view line) {
  if (base::trim(line).starts_with('#')) return {};
  if (const std::size_t comment = line.find(" #"); comment != std::string_view::npos) {
    line = line.substr(0, comment);
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return {.key = std::string(base::trim(line)), .value = {}};
  return {.key = std::string(base::trim(line.substr(0, colon))),
          .value = std::string(base::trim(line.substr(colon + 1)))};
}

const HardwareKey* find_key(std::string_view key) {
  const std::vector<HardwareKey>& all = hardware_keys();
  const auto found = std::ranges::find(all, key, &HardwareKey::key);
  return found == all.end() ? nullptr : &*found;
}

// True for integer keys.
bool is_whole(std::string_view key) {
  return key == "sms" || key == "gpus_per_node" || key == "nvlink_domain" || key == "tile_rows" ||
         key == "tile_columns";
}

// Networks are specified in bits.
std::string_view unit_hint(std::string_view key) {
  if (!key.ends_with("_gbps")) return "";
  return " (gigabytes a second: 400 Gb/s are 50)";
}

// Contradictions between numbers.
std::vector<std::string> contradictions(const Hardware& hardware) {
  std::vector<std::string> all;
  const auto hold = [&](bool is_so, std::string said) {
    if (!is_so) all.push_back(std::move(said));
  };
  hold(hardware.reserved_gb < hardware.memory_gb,
       text("reserved_gb = {:g} leaves nothing of memory_gb = {:g}",
            hardware.reserved_gb,
            hardware.memory_gb));
  hold(hardware.dispatch_sms < hardware.sms,
       text("dispatch_sms = {:g} leaves nothing of sms = {:g}",
            hardware.dispatch_sms,
            hardware.sms));
  const double larger = std::max(hardware.nvlink_domain, hardware.gpus_per_node);
  const double smaller = std::min(hardware.nvlink_domain, hardware.gpus_per_node);
  hold(std::fmod(larger, smaller) == 0,
       text("nvlink_domain = {:g} with gpus_per_node = {:g}: NVLink joins whole machines, or equal "
            "parts of one, so that one is a multiple of the other",
            hardware.nvlink_domain,
            hardware.gpus_per_node));
  hold(hardware.nic_gbps <= hardware.nvlink_gbps,
       text("nic_gbps = {:g} is more than nvlink_gbps = {:g}: both are gigabytes a second of one "
            "GPU, "
            "each way",
            hardware.nic_gbps,
            hardware.nvlink_gbps));
  hold(hardware.nvlink_gbps <= hardware.memory_gbps,
       text("nvlink_gbps = {:g} is more than memory_gbps = {:g}, the GPU's own memory",
            hardware.nvlink_gbps,
            hardware.memory_gbps));
  const double bf16 = hardware.peak(DType::BF16) * 1e-12;
  for (const DType format : kProductFormats) {
    const double peak = hardware.peak_tflops[format];
    const std::string_view name = name_of(format);
    hold(peak <= 0 || hardware.gemm_share[format] > 0,
         text("peak_{}_tflops is more than 0 and gemm_share_{} is not", name, name));
    hold(peak <= 0 || format == DType::F32 || peak >= bf16,
         text("peak_{}_tflops = {:g} is less than peak_bf16_tflops = {:g}", name, peak, bf16));
  }
  hold(bf16 > 0, "peak_bf16_tflops = 0: every GPU has bf16 products");
  return all;
}

class HardwareReader {
 public:
  explicit HardwareReader(std::string named) : named_(std::move(named)) {}

  Hardware read(const std::string& content) {
    hardware_.name = fs::path(named_).stem().string();
    for (const std::string& line : base::split(content, '\n')) {
      ++line_;
      if (const HardwareLine read = read_line(line); !read.key.empty()) take(read);
    }
    std::vector<std::string_view> missing;
    if (!seen_.contains(std::string(kDeviceKey))) missing.push_back(kDeviceKey);
    for (const HardwareKey& key : hardware_keys()) {
      if (!key.is_optional && !seen_.contains(std::string(key.key))) missing.push_back(key.key);
    }
    if (!missing.empty()) {
      complaints_.push_back(text("{}: {} missing: {}",
                                 named_,
                                 missing.size() == 1 ? "a number is" : "numbers are",
                                 fmt::join(missing, ", ")));
    }
    if (!complaints_.empty()) throw base::ConfigError(std::move(complaints_));
    // Ranks on processor cores run Weft, whatever the file says.
    if (hardware_.device == config::DeviceKind::Cpu) hardware_.program = Program::Weft;
    hardware_.work.keeps_dummy_gradients = hardware_.program == Program::MegatronBridge;
    return std::move(hardware_);
  }

 private:
  void take(const HardwareLine& line) {
    if (!seen_.emplace(line.key, line_).second) {
      return complain(text("key '{}' is given twice: keep one", base::shown(line.key)));
    }
    if (line.key == "summary") {
      hardware_.summary = base::shown(line.value);
      return;
    }
    if (line.key == kDeviceKey) return take_device(line.value);
    if (line.key == kProgramKey) return take_program(line.value);
    const bool is_of_weft = line.key.starts_with(kOfWeft);
    const HardwareKey* key = find_key(is_of_weft ? line.key.substr(kOfWeft.size()) : line.key);
    if (key == nullptr || (is_of_weft && !key->is_calibrated)) {
      return complain(unknown(line.key));
    }
    const std::optional<double> value = base::parse_number(line.value);
    if (!value) {
      return complain(text("{} = '{}' is not a number", key->key, base::shown(line.value)));
    }
    if (!(*value >= key->least && *value <= key->most)) {
      return complain(text("{} = {} is out of range: {:g} to {:g} is possible{}",
                           key->key,
                           base::shown(line.value),
                           key->least,
                           key->most,
                           unit_hint(key->key)));
    }
    if (is_whole(key->key) && *value != std::floor(*value)) {
      return complain(text("{} = {} is not a whole number", key->key, base::shown(line.value)));
    }
    if (is_of_weft) {
      hardware_.of_weft[std::string(key->key)] = *value;
    } else {
      key->set(hardware_, *value);
    }
  }

  void take_program(const std::string& value) {
    const auto found = std::ranges::find(kProgramWords, value);
    if (found != std::end(kProgramWords)) {
      hardware_.program = static_cast<Program>(found - std::begin(kProgramWords));
    } else {
      complain(text("program = '{}': {} are possible",
                    base::shown(value),
                    fmt::join(kProgramWords, " and ")));
    }
  }

  void take_device(const std::string& value) {
    const auto device = config::WordCodec<config::DeviceKind>::parse(value);
    if (device) {
      hardware_.device = *device;
    } else {
      complain(text("device = '{}': cuda and cpu are possible", base::shown(value)));
    }
  }

  std::string unknown(const std::string& word) const {
    std::vector<std::string> names{std::string(kDeviceKey), std::string(kProgramKey)};
    for (const HardwareKey& key : hardware_keys()) names.emplace_back(key.key);
    const auto best = base::nearest(word, names);
    return text("unknown key '{}'{}",
                base::shown(word),
                best ? text(": did you mean '{}'?", *best) : ": a line is 'key: number'");
  }

  void complain(const std::string& what) {
    complaints_.push_back(text("{}:{}: {}", named_, line_, what));
  }

  std::string named_;
  int line_ = 0;
  Hardware hardware_;
  std::map<std::string, int> seen_;
  std::vector<std::string> complaints_;
};

}  // namespace

std::string_view word(Program program) { return kProgramWords[static_cast<std::size_t>(program)]; }

std::string_view name_of(Program program) {
  return program == Program::Weft ? "Weft" : "Megatron Bridge";
}

ProgramWork work_of(Program program) {
  switch (program) {
    case Program::MegatronBridge:
      return {.keeps_dummy_gradients = true};
    case Program::Weft:
      // The first micro-batch assigns gradients. counts_us and flex_passes are fitted to steps of
      // one H200 (tests/golden/h200_runs.csv); the other numbers follow from its kernels.
      return {.launches_nodes = true,
              .counts_us = 330,
              .gradient_passes = 1,
              .loss_forward = 1,
              .loss_backward = 2,
              .flex_passes = 3};
  }
  return {};
}

double HardwareKey::get(const Hardware& hardware) const {
  return field != nullptr ? hardware.*field : (hardware.*row)[number];
}

void HardwareKey::set(Hardware& hardware, double value) const {
  (field != nullptr ? hardware.*field : (hardware.*row)[number]) = value;
}

const std::vector<HardwareKey>& hardware_keys() {
  using H = Hardware;
  static const std::vector<HardwareKey> keys = {
      told("sms", &H::sms, 1, 4096),
      told("memory_gb", &H::memory_gb, 1, 4096),
      told("memory_gbps", &H::memory_gbps, 1, 1e5),
      told("gpus_per_node", &H::gpus_per_node, 1, 1024),
      told("nvlink_domain", &H::nvlink_domain, 1, 1e5),
      told("nvlink_gbps", &H::nvlink_gbps, 1, 1e4),
      told("nic_gbps", &H::nic_gbps, 0.1, 250),
      told("host_link_gbps", &H::host_link_gbps, 0.1, 4000),
      told("host_memory_gb", &H::host_memory_gb, 0, 16384),
      told("host_memory_gbps", &H::host_memory_gbps, 0.1, 1e4),
      peak_of("peak_fp32_tflops", DType::F32),
      peak_of("peak_bf16_tflops", DType::BF16),
      peak_of("peak_fp8_tflops", DType::F8E4M3),
      peak_of("peak_mxfp8_tflops", DType::MXFP8),
      peak_of("peak_nvfp4_tflops", DType::NVFP4),
      fitted("sustained_share", &H::sustained_share, 0.1, 1.5),
      share_of("gemm_share_fp32", DType::F32),
      share_of("gemm_share_bf16", DType::BF16),
      share_of("gemm_share_fp8", DType::F8E4M3),
      share_of("gemm_share_mxfp8", DType::MXFP8),
      share_of("gemm_share_nvfp4", DType::NVFP4),
      optional("gemm_share_head", &H::gemm_share_head, 0, 1),
      fitted("tile_rows", &H::tile_rows, 1, 4096),
      fitted("tile_columns", &H::tile_columns, 1, 4096),
      fitted("tile_us", &H::tile_us, 0, 100),
      fitted("attention_forward_share", &H::attention_forward_share, 0.01, 1),
      fitted("attention_backward_share", &H::attention_backward_share, 0.01, 1),
      fitted("memory_share", &H::memory_share, 0.01, 1),
      fitted("kernel_us", &H::kernel_us, 0, 1000),
      fitted("launch_us", &H::launch_us, 0, 10000),
      fitted("nvlink_share", &H::nvlink_share, 0.01, 1),
      fitted("exchange_share", &H::exchange_share, 0.01, 1),
      fitted("nic_share", &H::nic_share, 0.01, 1),
      fitted("nvlink_latency_us", &H::nvlink_latency_us, 0, 1e5),
      fitted("nic_latency_us", &H::nic_latency_us, 0, 1e5),
      fitted("dispatch_sms", &H::dispatch_sms, 0, 4096),
      fitted("reserved_gb", &H::reserved_gb, 0, 1e4),
      fitted("host_link_share", &H::host_link_share, 0.01, 1),
      fitted("host_memory_share", &H::host_memory_share, 0.01, 1),
      fitted("host_memory_free", &H::host_memory_free, 0, 1),
      optional("host_core_gbps", &H::host_core_gbps, 0, 1e4),
  };
  return keys;
}

Hardware parse_hardware(const std::string& content, const std::string& named) {
  Hardware hardware = HardwareReader(named).read(content);
  std::vector<std::string> complaints = contradictions(hardware);
  if (complaints.empty()) return hardware;
  for (std::string& complaint : complaints) complaint = text("{}: {}", named, complaint);
  throw base::ConfigError(std::move(complaints));
}

bool has_rates_of(const Hardware& hardware, Program program) {
  return hardware.program == program || (program == Program::Weft && !hardware.of_weft.empty());
}

Hardware as_run_by(const Hardware& hardware, Program program) {
  if (hardware.program == program) return hardware;
  if (!has_rates_of(hardware, program)) {
    throw base::ConfigError(
        text("{} has no numbers of {}: its own are those of {}; use --program={}{}",
             base::shown(hardware.name),
             name_of(program),
             name_of(hardware.program),
             word(hardware.program),
             program == Program::Weft ? ", or --gpu=h200, on which Weft was measured" : ""));
  }
  Hardware run = hardware;
  run.program = program;
  run.work = work_of(program);
  for (const auto& [key, value] : hardware.of_weft) find_key(key)->set(run, value);
  for (const DType number : {DType::F8E4M3, DType::MXFP8, DType::NVFP4}) {
    // This build has no such products.
    run.peak_tflops[number] = 0;
  }
  return run;
}

std::vector<std::string> known_hardware(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

Hardware find_hardware(const fs::path& folder, const std::string& word) {
  std::error_code ignored;
  const bool is_path = word.find('/') != std::string::npos || word.ends_with(".yaml") ||
                       (word.find('.') != std::string::npos && fs::is_regular_file(word, ignored));
  // Names of GPUs ignore case, as in hardware.gpu.
  std::string name = word;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const fs::path file = is_path ? fs::path(word) : folder / (name + ".yaml");
  if (!fs::is_regular_file(file, ignored)) {
    const std::vector<std::string> known = known_hardware(folder);
    if (known.empty()) {
      throw base::ConfigError(text(
          "no hardware file of '{}', nor any other in '{}', which WEFT_HARDWARE sets: give the "
          "path of a file",
          base::shown(word),
          base::shown(folder.string())));
    }
    if (config::WordCodec<config::Gpu>::parse(name)) {
      throw base::ConfigError(
          text("{} has no price: weft check and weft memory know it, and there is no file of its "
               "rates; priced are {}; or give the path of a file, which weft calibrate --hardware "
               "makes on the card",
               name,
               fmt::join(known, ", ")));
    }
    throw base::ConfigError(
        text("no hardware file of '{}': known GPUs are {}; or give the path of a file",
             base::shown(word),
             fmt::join(known, ", ")));
  }
  const std::string content = base::read_text(file, kLargestHardwareFile);
  if (base::trim(content).starts_with('{')) {
    throw base::ConfigError(
        text("{} is no hardware file but JSON. What `weft calibrate` writes prices runs of the "
             "machine at hand: weft schedule RECIPE --calibration={}. A plan takes a file of 'key: "
             "number' lines: weft calibrate RECIPE --hardware=FILE.yaml writes one of this machine",
             base::shown(file.string()),
             base::shown(file.string())));
  }
  return parse_hardware(content, file.string());
}

std::string with_calibrated(const std::string& content, const Hardware& hardware) {
  std::string result;
  for (std::string line : base::split(content, '\n')) {
    const HardwareKey* key = find_key(read_line(line).key);
    if (key != nullptr && key->is_calibrated) {
      const std::size_t comment = line.find(" #");
      const std::string tail = comment == std::string::npos ? "" : line.substr(comment);
      line = text("{}: {:.4g}{}", key->key, key->get(hardware), tail);
    }
    result += line + "\n";
  }
  while (result.ends_with("\n\n")) result.pop_back();
  return result;
}

}  // namespace weft::plan
