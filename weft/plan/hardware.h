// A kind of GPU and the machine around it, as data: what its maker says, and what was calibrated.
//
// A rank on processor cores is told by the same numbers (device: cpu): its cores are the
// multiprocessors, and what joins ranks of one machine is in the place of NVLink.
//
// The files are flat YAML, one `key: value` a line, with `#` comments that say where a number comes
// from. Every key of hardware_keys() must be there, once, and within its range.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"

namespace weft::plan {

// What matrix products are in. Fp32: the whole run, weights and activations too. Fp8: one scale a
// tensor, or blocks; Mxfp8 and Nvfp4: scales of small blocks that the tensor cores apply.
enum class Number { Fp32, Bf16, Fp8, Mxfp8, Nvfp4 };
inline constexpr int kNumbers = static_cast<int>(Number::Nvfp4) + 1;
inline constexpr double kMicroseconds = 1e-6;
std::string_view word(Number number);

// Whose program a price is of: its launches and what one costs, and how near its kernels come to
// the card. Megatron Bridge's numbers are fitted to published runs, Weft's to its own.
enum class Program { MegatronBridge, Weft };
inline constexpr int kPrograms = 2;
// "megatron", as on the command line.
std::string_view word(Program program);
// "Megatron Bridge".
std::string_view name_of(Program program);

// What a program does of a step, whatever the card.
struct ProgramWork {
  bool launches_nodes = false;  // launch_us is for a node with all its kernels, else for a kernel
  // Microseconds in which the device has nothing to do while the host reads the row counts of a
  // layer. 0: they follow from its launches.
  double counts_us = 0;
  double gradient_passes = 2;  // over all gradients, besides the optimizer's: set to zero, normed
  double loss_forward = 3, loss_backward = 2;  // passes over the logits
  // Passes over the rows of experts, each way, that a flex dispatcher makes besides those of the
  // permutation: they are expanded by expert where they arrive, and summed before they return.
  double flex_passes = 0;
  // True: of each shape of a weight a gradient is kept that nothing reads (Transformer Engine,
  // where products add to the gradient).
  bool keeps_dummy_gradients = false;
};
ProgramWork work_of(Program program);

struct Hardware {
  std::string name;  // of the file: "h100"
  std::string summary;
  // What a rank computes on: a GPU, or some cores of a processor.
  config::DeviceKind device = config::DeviceKind::Cuda;
  // The program that the calibrated numbers are of.
  Program program = Program::MegatronBridge;
  // Numbers that Weft's own engine has instead, by key: the lines `weft_KEY: number`.
  std::map<std::string, double> of_weft;
  ProgramWork work;

  // As advertised.
  double sms = 0;
  double memory_gb = 0;    // 1e9 bytes, as CUDA counts them
  double memory_gbps = 0;  // 1e9 bytes a second, of its own memory
  double gpus_per_node = 0;
  double nvlink_domain = 0;                       // GPUs that NVLink joins
  double nvlink_gbps = 0;                         // each way
  double nic_gbps = 0;                            // of a GPU's share of the network, each way
  double host_link_gbps = 0;                      // to the host's memory, each way
  double host_memory_gb = 0;                      // of a GPU's share of its host
  double host_memory_gbps = 0;                    // the same: what its cores read and write
  std::array<double, kNumbers> peak_tflops = {};  // dense; 0: it has no such products

  // Calibrated.
  double sustained_share = 1;  // clock that the power limit leaves, of the one the peak is for
  std::array<double, kNumbers> gemm_share = {};  // large products, of the sustained peak
  // The same of the head's in bf16 where the layers' are in fewer bits; 0: as bf16 is otherwise.
  double gemm_share_head = 0;
  double tile_rows = 0, tile_columns = 0;  // of a product's result, that are computed at a time
  double tile_us = 0;                      // begin and end of one such tile
  double attention_forward_share = 0;      // of the sustained peak in bf16, or in fp32 runs fp32
  double attention_backward_share = 0;
  double memory_share = 0;    // of memory_gbps that kernels reach
  double kernel_us = 0;       // from the end of one kernel to the work of the next
  double launch_us = 0;       // the host's time for a kernel, with the program around it
  double nvlink_share = 0;    // of nvlink_gbps, by dispatchers that send a token once to a rank
  double exchange_share = 0;  // the same by collectives and a plain all-to-all
  double nic_share = 0;       // of nic_gbps
  double nvlink_latency_us = 0;
  double nic_latency_us = 0;
  double dispatch_sms = 0;       // taken by a dispatch where the run does not say
  double reserved_gb = 0;        // context, allocator and libraries
  double host_link_share = 0;    // of host_link_gbps, by copies both ways at one time
  double host_memory_share = 0;  // of host_memory_gbps, by the host's AdamW
  double host_memory_free = 0;   // of host_memory_gb, for what a run offloads
  double host_core_gbps = 0;     // by AdamW on one core of the host; 0: cores are no limit

  double peak(Number number) const { return peak_tflops[static_cast<std::size_t>(number)] * 1e12; }
  // Large matrix products, operations a second.
  double gemm_rate(Number number) const {
    return peak(number) * sustained_share * gemm_share[static_cast<std::size_t>(number)];
  }
  double memory_rate() const { return memory_gbps * 1e9 * memory_share; }
  // Bytes a second, and bytes.
  double host_link_rate() const { return host_link_gbps * 1e9 * host_link_share; }
  double host_memory_rate() const { return host_memory_gbps * 1e9 * host_memory_share; }
  double host_room() const { return host_memory_gb * 1e9 * host_memory_free; }
};

// One number of a Hardware, by its key in the file.
struct HardwareKey {
  std::string_view key;
  double Hardware::*field = nullptr;  // or, of a number's row,
  std::array<double, kNumbers> Hardware::*row = nullptr;
  Number number = Number::Bf16;
  double least = 0, most = 0;
  bool is_calibrated = false;
  bool is_optional = false;

  double get(const Hardware& hardware) const;
  void set(Hardware& hardware, double value) const;
};
const std::vector<HardwareKey>& hardware_keys();

// ConfigError naming `named` and the line of every key that is unknown, given twice, missing, no
// number, or out of its range; and numbers that contradict each other.
Hardware parse_hardware(const std::string& content, const std::string& named);

// The same card under a program. ConfigError where the file has no numbers of it.
Hardware as_run_by(const Hardware& hardware, Program program);
// Whether the file has numbers of the program.
bool knows(const Hardware& hardware, Program program);

// The GPUs a folder has files of, by name.
std::vector<std::string> known_hardware(const std::filesystem::path& folder);
// FOLDER/<word>.yaml, or a path (a word with '/', ending in .yaml, or that is a file). ConfigError
// that lists the known ones where there is no such file.
Hardware find_hardware(const std::filesystem::path& folder, const std::string& word);

// The content of the file with these calibrated numbers in place of its own; comments stay.
std::string with_calibrated(const std::string& content, const Hardware& hardware);

}  // namespace weft::plan
