// Starts the ranks of a world and gives each rank its endpoint.
//
// The caller gets one error for any number of failed ranks. Its kind is that of the first failure
// and its text has the rank in front: "rank 3: 3F7.dispatch (all_to_all): ...". A failed rank ends
// the others: they throw in the operation in flight or in the next one.
//
// cli/ chooses between threads and MPI. A process started by Open MPI finds the number of ranks in
// OMPI_COMM_WORLD_SIZE and its own rank in OMPI_COMM_WORLD_RANK.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "weft/comm/communicator.h"
#include "weft/grid/fabric.h"

namespace weft::comm {

// Environment variables of the process by name; cli/ reads them.
using Environment = std::map<std::string, std::string>;

// Experts named in the messages of a group, for a backend that answers as this rank's peers. Rows
// for a member's experts return as that member's rows for this rank's experts.
struct ExpertMessages {
  // Member m has the experts [first + m * each, first + (m + 1) * each). each = 0: no message names
  // experts.
  std::int64_t first = 0, each = 0;
  // Index of this rank's count that stands at `place` among the counts of `member`. Empty: the same
  // index. The message is one of sealed counts (base/sealed_count.h).
  std::function<std::int64_t(int member, std::int64_t place)> counted_at = {};
};

struct LaunchOptions {
  int world = 0;                // number of ranks; MPI, NCCL: 0 takes the number of the launcher
  int rank = 0;                 // rank to pretend to be (fake and loopback only)
  double timeout_seconds = 60;  // longest wait for a peer
  // Threads and loopback only: emulated links, as in Endpoint::set_fabric.
  std::optional<grid::Fabric> fabric = {};
  // Loopback only: by group name.
  std::map<std::string, ExpertMessages> expert_messages = {};
  // NCCL only: the set variables among nccl_variables().
  Environment environment = {};
  // MPI and NCCL only: receives the error text that run_mpi or run_nccl is about to throw, on every
  // rank and before any rank leaves. Print it here: a launcher ends all ranks as soon as one exits
  // with an error.
  std::function<void(const std::string& error)> report = {};
};

using RankFunction = std::function<void(Endpoint&)>;

// Runs `body`; if it throws, tells all ranks before the stack unwinds further. A rank works inside
// this call and inside the scope of its streams. Reason: the end of a stream waits for its queue,
// and a queued operation waits for peers.
void poison_on_error(Endpoint& endpoint, const std::function<void()>& body);

// Runs ranks as threads of this process; returns when all have ended.
void run_threads(const LaunchOptions& options, const RankFunction& function);

// Runs this process as one of the launcher's ranks; once per process. If a rank fails, every rank
// throws: that rank its own error, the others an error that names it. An unreachable rank (in an
// endless computation) is ended by the launcher when this process exits. A rank killed by a signal
// is reported by the launcher.
void run_mpi(const LaunchOptions& options, const RankFunction& function);
// True if this build has the MPI backend; run_mpi is a ConfigError otherwise.
bool has_mpi();

// Runs this process as one rank on one GPU. Its device is LOCAL_RANK modulo the number of visible
// devices. Ranks find each other over TCP at MASTER_ADDR and MASTER_PORT, and talk through NCCL on
// the streams of the CUDA device. ConfigError: missing or wrong variables
// (comm/rendezvous/place.h). SystemError: no NCCL backend in this build, missing libraries, no GPU,
// two ranks with one GPU, or a rank that misses the timeout.
//
// Differences from the other backends: members meet when they make a group, so all ranks of the
// world make their groups in one order. A disagreement on a size or an operation ends in the
// timeout. Sums are repeatable, in an order that NCCL chooses. Operations of all groups reach NCCL
// in call order: a blocked operation blocks all later ones.
void run_nccl(const LaunchOptions& options, const RankFunction& function);
// Reason why run_nccl cannot run here, and the fix, judged by the libraries. Empty: the libraries
// are present.
std::string why_no_nccl();
// Environment variables that run_nccl reads.
std::span<const char* const> nccl_variables();

// Runs one rank of a pretended world alone. Operations end at once; bytes are counted as in a real
// world. Every peer is assumed to hold this rank's data and to send what this rank sends to itself.
// all_gather repeats its own rows; a sum is size() times its own; all_to_all receives from each
// peer the rows that this rank sends to itself. These are repeated or cut to the expected count,
// block by block (zeros for an empty block). Sealed counts (base/sealed_count.h) carry the code of
// the pretended sender. A broadcast leaves the data unchanged. A receive yields zeros.
void run_fake(const LaunchOptions& options, const RankFunction& function);

// Runs one rank of a pretended world with real copies. Bytes for a peer go to host memory, and the
// bytes expected from the peer come back from there. Over an emulated fabric the bytes stay in the
// device. The operation then lasts until the last byte would have passed this rank's ports, in a
// world without late ranks.
//
// all_to_all returns to each peer's place the rows sent to that peer. These are repeated or cut to
// the expected count, block by block (zeros for an empty block). all_gather repeats its own rows.
// `expert_messages` answers messages about experts; in such a group reduce_scatter sums the rows
// sent to the peers. Any other sum is size() times its own. A broadcast leaves the data unchanged.
// A receive yields the first message that this rank sent to any peer; zeros if it sends none
// before.
void run_loopback(const LaunchOptions& options, const RankFunction& function);

// ConfigError: world, rank or timeout out of range. smallest_world = 1: the world must be given.
void check_options(const LaunchOptions& options, int smallest_world);
// ConfigError if a fabric is given: this backend has real links.
void refuse_fabric(const std::optional<grid::Fabric>& fabric);

}  // namespace weft::comm
