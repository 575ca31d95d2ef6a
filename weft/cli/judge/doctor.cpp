// weft doctor: usable parts of this machine, limits, and fixes.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/run/libraries.h"
#include "weft/cli/run/machine.h"
#include "weft/comm/launch.h"
#include "weft/kernels/device.h"

namespace weft::cli {
namespace {

using base::text;
using kernels::Gpu;
using kernels::GpuLink;

struct DoctorOptions {
  Format format = Format::Text;
};

// Something that cannot run here.
struct Limit {
  std::string what;  // "runtime.device=cuda"
  std::string why;
  std::string fix;
};

struct Findings {
  Machine machine;
  kernels::GpuReport gpus;
  std::vector<LibraryFact> libraries;
  std::vector<Limit> limits;
};

// Removes the program's folder from a message: a folder may name its owner.
std::string without_folder(std::string message) {
  std::error_code ignored;
  const std::string folder =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
  if (folder.size() < 2) return message;
  const auto replace = [&](const std::string& from, std::string_view to) {
    for (std::size_t at; (at = message.find(from)) != message.npos;) {
      message.replace(at, from.size(), to);
    }
  };
  replace(folder + "/", "");
  replace(folder, "the folder of the program");
  return message;
}

// Splits errors of the CUDA device, which read "the reason; the fix".
Limit limit_of(std::string what, const std::string& error, const std::string& else_fix) {
  const std::string message = without_folder(error);
  const std::size_t end = message.find("; ");
  if (end == message.npos) return {std::move(what), message, else_fix};
  return {std::move(what), message.substr(0, end), message.substr(end + 2)};
}

bool is_usable(const Gpu& gpu) { return gpu.why_not.empty(); }

void add_gpu_limits(const Findings& found, std::vector<Limit>& limits) {
  const kernels::GpuReport& gpus = found.gpus;
  if (!gpus.why_none.empty()) {
    limits.push_back(limit_of("runtime.device=cuda",
                              gpus.why_none,
                              "install the CUDA toolkit that weft was built with, or name the "
                              "folder of its libraries in LD_LIBRARY_PATH"));
  }
  const auto is_driver = [](const LibraryFact& each) { return each.name == "NVIDIA driver"; };
  const auto driver = std::ranges::find_if(found.libraries, is_driver);
  if (!gpus.library_loaded && driver != found.libraries.end() && !driver->found) {
    limits.push_back({"runtime.device=cuda",
                      "there is no NVIDIA driver (libcuda.so.1)",
                      "install one, or start the container with the GPUs (docker run --gpus all)"});
  }
  if (!gpus.why_no_cudnn.empty()) {
    limits.push_back(
        limit_of("attention by cuDNN (a slower kernel computes it)", gpus.why_no_cudnn, ""));
  }
  for (const Gpu& gpu : gpus.gpus) {
    if (is_usable(gpu)) continue;
    limits.push_back(
        limit_of(text("GPU {}", gpu.ordinal), gpu.why_not, "nvidia-smi shows its state"));
  }
  if (std::ranges::count_if(gpus.gpus, is_usable) > 1) {
    limits.push_back({"several GPUs under runtime.backend=threads",
                      "ranks of one process share GPU 0",
                      "start one rank a GPU with torchrun or mpirun and runtime.backend=nccl "
                      "(docs/gpu.md), which nobody has tried yet on more than one GPU"});
  }
}

// Megatron's launch scripts set it to 1 for an order that Weft does not need.
void add_connection_limits(std::vector<Limit>& limits) {
  constexpr int kEnough = 8;
  const char* set = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const std::optional<long long> connections =
      set == nullptr ? std::nullopt : base::parse_integer(set);
  if (!connections || *connections >= kEnough) return;
  limits.push_back({"overlap on GPUs, in full",
                    text("CUDA_DEVICE_MAX_CONNECTIONS={} makes streams wait for each other", set),
                    "unset it: Weft then asks for 32"});
}

// Reported only if GPUs are usable without NCCL.
void add_nccl_limits(const Findings& found, std::vector<Limit>& limits) {
  const std::string why = comm::why_no_nccl();
  if (!found.gpus.library_loaded || why.empty()) return;
  limits.push_back(limit_of("runtime.backend=nccl",
                            why,
                            "install NCCL (apt-get install libnccl2), or name the folder of "
                            "libnccl.so.2 in LD_LIBRARY_PATH"));
}

bool is_mpi_ready() { return comm::has_mpi() && has_program("mpirun"); }

void add_mpi_limits(std::vector<Limit>& limits) {
  if (!comm::has_mpi()) {
    limits.push_back({"runtime.backend=mpi",
                      "this build has no MPI",
                      "apt-get install libopenmpi-dev openmpi-bin, configure and build again"});
  } else if (!has_program("mpirun")) {
    limits.push_back(
        {"runtime.backend=mpi", "there is no mpirun in PATH", "apt-get install openmpi-bin"});
  }
}

Findings look() {
  Findings found{.machine = this_machine(), .gpus = kernels::gpu_report()};
  found.libraries = find_libraries(found.gpus);
  add_gpu_limits(found, found.limits);
  add_mpi_limits(found.limits);
  add_nccl_limits(found, found.limits);
  if (found.gpus.library_loaded) add_connection_limits(found.limits);
  return found;
}

std::string_view link_word(GpuLink link) {
  switch (link) {
    case GpuLink::NvLink:
      return "NVLink";
    case GpuLink::Pci:
      return "PCI";
    case GpuLink::Host:
      return "host memory";
  }
  return "";
}

// "; NVLink to 1, 2; host memory to 3"
std::string peers_text(const Gpu& gpu) {
  std::string all;
  for (const GpuLink link : {GpuLink::NvLink, GpuLink::Pci, GpuLink::Host}) {
    std::vector<int> to;
    for (const kernels::GpuPeer& peer : gpu.peers) {
      if (peer.link == link) to.push_back(peer.ordinal);
    }
    if (!to.empty()) all += text("; {} to {}", link_word(link), fmt::join(to, ", "));
  }
  return all;
}

std::string gpu_text(const Gpu& gpu) {
  const std::string node = gpu.numa_node < 0 ? "" : text(", NUMA node {}", gpu.numa_node);
  return text("{}, compute capability {}.{}, {} multiprocessors, {} ({} free), PCI {}{}{}",
              gpu.name,
              gpu.major,
              gpu.minor,
              gpu.multiprocessors,
              base::human_bytes(static_cast<double>(gpu.memory_bytes)),
              base::human_bytes(static_cast<double>(gpu.free_bytes)),
              gpu.pci,
              node,
              peers_text(gpu));
}

void print_row(const std::string& name, const std::string& facts) {
  print_text(text("  {:<16} {}\n", name, facts));
}

void show_what_works(const Findings& found) {
  const Machine& machine = found.machine;
  print_text(text("weft {}, {} build, {}\n\nWorks here:\n",
                  machine.version,
                  machine.build,
                  machine.compiler));
  print_row("CPU",
            text("{}, {}, {}",
                 machine.cpu,
                 base::counted(machine.cores, "core"),
                 base::human_bytes(static_cast<double>(machine.memory_bytes))));
  for (const Gpu& gpu : found.gpus.gpus) {
    if (is_usable(gpu)) print_row(text("GPU {}", gpu.ordinal), gpu_text(gpu));
  }
  const bool has_nccl = found.gpus.library_loaded && comm::why_no_nccl().empty();
  print_row("ranks",
            text("threads{}{}",
                 is_mpi_ready() ? ", MPI processes" : "",
                 has_nccl ? ", NCCL processes with a GPU each" : ""));
}

void show_libraries(const Findings& found) {
  print_text("\nLibraries:\n");
  std::vector<std::string> absent;
  for (const LibraryFact& library : found.libraries) {
    if (library.found) {
      const std::string version =
          library.version.empty() ? "of an unknown version" : library.version;
      print_row(library.name, text("{}, {}", version, library.use));
    } else {
      absent.push_back(text("{} ({})", library.name, library.use));
    }
  }
  if (found.gpus.library_loaded) print_row("GPU kernels", text("for {}", found.gpus.built_for));
  if (!absent.empty()) print_row("not found", text("{}", fmt::join(absent, ", ")));
}

void show_what_is_missing(const Findings& found) {
  if (found.limits.empty()) return print_text("\nEverything that is built runs here.\n");
  print_text("\nDoes not run here:\n");
  for (const Limit& limit : found.limits) {
    print_text(text("  {}: {}\n    -> {}\n", limit.what, limit.why, limit.fix));
  }
}

base::Json gpu_json(const Gpu& gpu) {
  base::Json links = base::Json::array();
  for (const kernels::GpuPeer& peer : gpu.peers) {
    links.push_back({{"to", peer.ordinal}, {"link", link_word(peer.link)}});
  }
  return {{"kind", "cuda"},
          {"ordinal", gpu.ordinal},
          {"name", gpu.name},
          {"usable", is_usable(gpu)},
          {"compute_capability", text("{}.{}", gpu.major, gpu.minor)},
          {"multiprocessors", gpu.multiprocessors},
          {"memory_bytes", gpu.memory_bytes},
          {"free_bytes", gpu.free_bytes},
          {"pci", gpu.pci},
          {"numa_node", gpu.numa_node < 0 ? base::Json() : base::Json(gpu.numa_node)},
          {"links", std::move(links)}};
}

base::Json devices_json(const Findings& found) {
  base::Json devices = base::Json::array();
  devices.push_back({{"kind", "cpu"},
                     {"name", found.machine.cpu},
                     {"usable", true},
                     {"cores", found.machine.cores},
                     {"memory_bytes", found.machine.memory_bytes}});
  for (const Gpu& gpu : found.gpus.gpus) devices.push_back(gpu_json(gpu));
  return devices;
}

void show_json(const Findings& found) {
  base::Json libraries = base::Json::array(), limits = base::Json::array();
  for (const LibraryFact& each : found.libraries) {
    libraries.push_back(
        {{"name", each.name},
         {"found", each.found},
         {"version", each.version.empty() ? base::Json() : base::Json(each.version)},
         {"use", each.use}});
  }
  for (const Limit& limit : found.limits) {
    limits.push_back({{"what", limit.what}, {"message", limit.why}, {"fix", limit.fix}});
  }
  print_json({{"devices", devices_json(found)},
              {"libraries", std::move(libraries)},
              {"limits", std::move(limits)},
              {"kernels_for", found.gpus.built_for},
              {"machine", to_json(found.machine)}});
}

int run_doctor(const DoctorOptions& options) {
  const Findings found = look();
  switch (options.format) {
    case Format::Text:
      show_what_works(found);
      show_libraries(found);
      show_what_is_missing(found);
      break;
    case Format::Json:
      show_json(found);
      break;
  }
  return kGood;
}

}  // namespace

void add_doctor(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "doctor",
      "say what of this machine weft can use, what will not run here and why, and what to install");
  auto options = std::make_shared<DoctorOptions>();
  add_format(*command, options->format);
  command->footer("Example: weft doctor\nNothing that it prints names the machine or its owner.");
  on_chosen(*command, chosen, std::move(options), run_doctor);
}

}  // namespace weft::cli
