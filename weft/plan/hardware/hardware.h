// Kind of GPU and its machine as data: the maker's numbers and calibrated ones.
//
// A rank on processor cores uses the same numbers (device: cpu): its cores are the multiprocessors,
// and links between ranks of one machine replace NVLink.
//
// Files are flat YAML, one `key: value` per line, with `#` comments on the source of each number.
// Every key of hardware_keys() must appear once, within its range.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/dtype.h"
#include "weft/config/config.h"

namespace weft::plan {

using base::DType;
using base::name_of;

// Formats of matrix products. F32: the whole run, weights and activations included. F8E4M3: any fp8
// with one scale per tensor, or blocks. MXFP8 and NVFP4: scales of small blocks, applied by the
// tensor cores.
inline constexpr std::array kProductFormats{DType::F32,
                                            DType::BF16,
                                            DType::F8E4M3,
                                            DType::MXFP8,
                                            DType::NVFP4};

// A number for each format of matrix products.
struct PerFormat {
  std::array<double, base::kDTypes.size()> by_dtype = {};

  double& operator[](DType format) { return by_dtype[static_cast<std::size_t>(format)]; }
  double operator[](DType format) const { return by_dtype[static_cast<std::size_t>(format)]; }
};

inline constexpr double kMicroseconds = 1e-6;

// Program behind a price: its launches with their cost, and the efficiency of its kernels. Megatron
// Bridge's numbers are fitted to published runs, Weft's to its own runs.
enum class Program { MegatronBridge, Weft };
inline constexpr int kPrograms = 2;
// "megatron", as on the command line.
std::string_view word(Program program);
// "Megatron Bridge".
std::string_view name_of(Program program);

// Work of a program in a step, independent of the GPU.
struct ProgramWork {
  // True: launch_us is per node with all its kernels; false: per kernel.
  bool launches_nodes = false;
  // Idle microseconds of the device while the host reads the row counts of a layer. 0: they follow
  // from its launches.
  double counts_us = 0;
  // Passes over all gradients besides the optimizer's: zeroing and norm.
  double gradient_passes = 2;
  double loss_forward = 3, loss_backward = 2;  // passes over the logits
  // Extra passes over expert rows, each way, of a flex dispatcher: it expands rows by expert on
  // arrival, and sums them before the return.
  double flex_passes = 0;
  // True: keeps one unread gradient per weight shape (Transformer Engine, if products accumulate
  // into the gradient).
  bool keeps_dummy_gradients = false;
};
ProgramWork work_of(Program program);

struct Hardware {
  std::string name;  // name of the file: "h100"
  std::string summary;
  // Compute device of a rank: a GPU, or some cores of a processor.
  config::DeviceKind device = config::DeviceKind::Cuda;
  // Program behind the calibrated numbers.
  Program program = Program::MegatronBridge;
  // Replacement numbers for Weft's own engine by key: the lines `weft_KEY: number`.
  std::map<std::string, double> of_weft;
  ProgramWork work;

  // Advertised numbers.
  double sms = 0;
  double memory_gb = 0;    // 1e9 bytes, as in CUDA
  double memory_gbps = 0;  // 1e9 bytes per second of its own memory
  double gpus_per_node = 0;
  double nvlink_domain = 0;     // GPUs joined by NVLink
  double nvlink_gbps = 0;       // per direction
  double nic_gbps = 0;          // a GPU's share of the network, per direction
  double host_link_gbps = 0;    // to host memory, per direction
  double host_memory_gb = 0;    // a GPU's share of its host
  double host_memory_gbps = 0;  // a GPU's share: reads and writes of the host's cores
  PerFormat peak_tflops;        // dense; 0: no such products

  // Calibrated numbers.
  double sustained_share = 1;  // share of the advertised clock under the power limit
  PerFormat gemm_share;        // large products, share of the sustained peak
  // gemm_share of the bf16 head beside layers in narrower formats; 0: as other bf16 products.
  double gemm_share_head = 0;
  double tile_rows = 0, tile_columns = 0;  // tile of a product's result
  double tile_us = 0;                      // prologue and epilogue of one tile
  double attention_forward_share = 0;      // share of the sustained peak in bf16; fp32 in fp32 runs
  double attention_backward_share = 0;
  double memory_share = 0;  // share of memory_gbps that kernels reach
  double kernel_us = 0;     // from the end of one kernel to the work of the next
  double launch_us = 0;     // host time per kernel, including the program around it
  double nvlink_share = 0;  // share of nvlink_gbps, for dispatchers that send a token once per rank
  double exchange_share = 0;  // share of nvlink_gbps, for collectives and a plain all-to-all
  double nic_share = 0;       // share of nic_gbps
  double nvlink_latency_us = 0;
  double nic_latency_us = 0;
  double dispatch_sms = 0;       // multiprocessors of a dispatch, unless the run sets them
  double reserved_gb = 0;        // context, allocator and libraries
  double host_link_share = 0;    // share of host_link_gbps, for copies in both directions at once
  double host_memory_share = 0;  // share of host_memory_gbps, for the host's AdamW
  double host_memory_free = 0;   // share of host_memory_gb that offloading may use
  double host_core_gbps = 0;     // AdamW on one host core; 0: cores are no limit

  double peak(DType number) const { return peak_tflops[number] * 1e12; }
  // FLOP/s of large matrix products.
  double gemm_rate(DType number) const {
    return peak(number) * sustained_share * gemm_share[number];
  }
  double memory_rate() const { return memory_gbps * 1e9 * memory_share; }
  // Bytes per second, and bytes.
  double host_link_rate() const { return host_link_gbps * 1e9 * host_link_share; }
  double host_memory_rate() const { return host_memory_gbps * 1e9 * host_memory_share; }
  double host_room() const { return host_memory_gb * 1e9 * host_memory_free; }
};

// One number of a Hardware and its key in the file.
struct HardwareKey {
  std::string_view key;
  double Hardware::*field = nullptr;  // or, for one number of a row,
  PerFormat Hardware::*row = nullptr;
  DType number = DType::BF16;
  double least = 0, most = 0;
  bool is_calibrated = false;
  bool is_optional = false;

  double get(const Hardware& hardware) const;
  void set(Hardware& hardware, double value) const;
};
const std::vector<HardwareKey>& hardware_keys();

// ConfigError with `named` and the line of every unknown, repeated, missing, non-numeric or
// out-of-range key, and of contradicting numbers.
Hardware parse_hardware(const std::string& content, const std::string& named);

// Variant of the hardware under a program. ConfigError if the file lacks its numbers.
Hardware as_run_by(const Hardware& hardware, Program program);
// True if the file has numbers for the program.
bool has_rates_of(const Hardware& hardware, Program program);

// Names of the GPUs with a file in the folder.
std::vector<std::string> known_hardware(const std::filesystem::path& folder);
// Finds FOLDER/<word>.yaml, or a path (a word with '/', with .yaml, or of an existing file).
// ConfigError with the known names if there is no such file.
Hardware find_hardware(const std::filesystem::path& folder, const std::string& word);

// Replaces the calibrated numbers in the content of the file; keeps comments.
std::string with_calibrated(const std::string& content, const Hardware& hardware);

}  // namespace weft::plan
