// Starts the ranks of a run on the configured backend and makes their devices.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "weft/comm/launch.h"
#include "weft/kernels/device.h"
#include "weft/rules/judged_config.h"
#include "weft/tensor/device.h"

namespace weft::train {

using Report = std::function<void(const std::string& error)>;

// Callbacks of this process for a run over several processes; empty for all others.
struct Process {
  Report report = {};
  comm::Environment environment = {};  // see comm::nccl_variables()
};

// Thrown in place of an error that `report` has already received.
class ReportedError : public std::exception {
 public:
  enum class Cause { Input, Run };
  explicit ReportedError(Cause cause) : cause_(cause) {}
  Cause cause() const { return cause_; }
  const char* what() const noexcept override { return "an error that has been reported"; }

 private:
  Cause cause_;
};

// Sets up the process (BLAS on one thread) and runs `body` on every rank, over the configured
// emulated fabric and cores; comm/launch.h describes failures. Under MPI and NCCL a failing rank
// calls `report` before any rank leaves, since the launcher may end the waiting ranks. It then
// throws ReportedError; elsewhere the error itself is thrown.
void launch(const rules::JudgedConfig& config,
            const Process& process,
            const comm::RankFunction& body);

// Device of a rank; each rank makes its own. `local_rank`: index among the ranks of its machine.
std::unique_ptr<tensor::Device> make_device(const rules::JudgedConfig& config, int local_rank);
// Dry device: allocates the same memory and computes nothing (kernels::make_dry_device).
std::unique_ptr<tensor::Device> make_dry_device(
    const rules::JudgedConfig& config,
    kernels::DryRouting routing = kernels::DryRouting::Even);

// Cores that a rank may use while it runs alone, as at its start. It is a share of the process's
// cores, or of the machine's if each rank is a process.
std::int64_t share_of_cores(const config::Config& config);

}  // namespace weft::train
