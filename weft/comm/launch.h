// Starts the ranks of a world and gives each its endpoint.
//
// However many ranks fail, the caller gets one error, of the kind that was thrown first, with the
// rank in front: "rank 3: 3F7.dispatch (all_to_all): ...". A rank that fails ends the others: they
// throw at their next operation, or out of the one they wait in.
//
// Whether to use threads or MPI is decided in cli/: a process started by Open MPI finds the number
// of ranks in OMPI_COMM_WORLD_SIZE and its own in OMPI_COMM_WORLD_RANK.
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

// Variables of the process's environment, by name; read in cli/.
using Environment = std::map<std::string, std::string>;

// What the messages of a group say about experts, for a backend that answers in the place of this
// rank's peers: rows for a member's experts return as that member's rows for this rank's.
struct ExpertMessages {
  // Member m has the experts from first + m * each on. each = 0: no message names experts.
  std::int64_t first = 0, each = 0;
  // Which of the numbers that this rank counted (a message of sealed counts, base/sealed_count.h)
  // stands at `place` of what `member` counts. None: the one at the same place.
  std::function<std::int64_t(int member, std::int64_t place)> counted_at = {};
};

struct LaunchOptions {
  int world = 0;                // ranks; MPI, NCCL: 0 accepts the launcher's number
  int rank = 0;                 // which rank to pretend to be (fake and loopback only)
  double timeout_seconds = 60;  // longest wait for a peer
  // Threads and loopback only: the emulated links, over which meetings end late; as
  // Endpoint::set_fabric takes them.
  std::optional<grid::Fabric> fabric = {};
  // Loopback only: by the name of the group.
  std::map<std::string, ExpertMessages> expert_messages = {};
  // NCCL only: those of nccl_variables() that are set.
  Environment environment = {};
  // MPI and NCCL only: called with the text of the error that run_mpi or run_nccl is about to
  // throw, on every rank and before any rank leaves. The place to print it: a launcher ends all
  // ranks as soon as one exits with an error, so whoever prints afterwards may not get to it.
  std::function<void(const std::string& error)> report = {};
};

using RankFunction = std::function<void(Endpoint&)>;

// Runs `body`; if it throws, tells all ranks before anything else is unwound. A rank does its work
// through this, inside the scope of its streams: the end of a stream waits for its queue, and a
// queued operation waits for peers that would only learn of the failure afterwards.
void poison_on_error(Endpoint& endpoint, const std::function<void()>& body);

// Ranks as threads of this process; returns when all have ended.
void run_threads(const LaunchOptions& options, const RankFunction& function);

// This process is one rank of those the launcher started; once a process. When a rank fails, every
// rank throws: that rank its own error, the others one that names it. A rank that cannot be reached
// any more (it computes without end) is left to the launcher, which ends it when this process
// exits; a rank killed by a signal is the launcher's to report.
void run_mpi(const LaunchOptions& options, const RankFunction& function);
// Whether this build has the MPI backend; run_mpi is a ConfigError where it has not.
bool has_mpi();

// This process is one rank, on a GPU of its own: the one whose number, among those that the process
// sees, is LOCAL_RANK modulo how many there are. Ranks find each other over TCP at MASTER_ADDR and
// MASTER_PORT, and talk through NCCL, on the streams of the CUDA device. ConfigError for variables
// that are missing or wrong (comm/rendezvous/place.h); SystemError where this build has no NCCL
// backend, its libraries or the GPU are missing, two ranks have the same GPU, or a rank does not
// come within the timeout.
//
// What differs from the other backends: a group's members meet where they make it, so that all
// ranks of the world make their groups in one order. Members that disagree on a size or an
// operation get no error but the timeout's. Sums are repeatable, in an order of NCCL's own.
// Operations reach NCCL in the order of the calls, whatever their group: one that is held up holds
// up all that are enqueued after it.
void run_nccl(const LaunchOptions& options, const RankFunction& function);
// Why run_nccl cannot run here, and the way out, as far as the libraries tell; empty where they are
// there.
std::string why_no_nccl();
// What run_nccl wants to know of the environment.
std::span<const char* const> nccl_variables();

// One rank of a pretended world, alone: operations end at once and bytes are counted as if the
// world were real. Every peer is taken to hold what this rank holds and to send this rank what it
// sends to itself: all_gather repeats its own rows, a sum is size() times its own, all_to_all
// receives from each peer the rows this rank sends to itself (over again, or cut, to the expected
// count; block by block, zeros where a block is empty). Sealed counts (base/sealed_count.h) arrive
// under the code of the peer that would have sent them. A broadcast leaves the data as it is; what
// is received from a peer is zeros.
void run_fake(const LaunchOptions& options, const RankFunction& function);

// One rank of a pretended world whose bytes travel: what would leave for a peer goes to host
// memory, and as many bytes as would come from the peer come back from there. Over an emulated
// fabric they stay in the device, and the operation until the last of them would have passed this
// rank's ports, in a world where no other rank is late. An all_to_all returns
// to each peer's place what was sent to that peer (over again, or cut, to the expected count; block
// by block, zeros where a block is empty), an all_gather its own rows; messages about experts are
// answered as `expert_messages` says, and in such a group a reduce_scatter sums what was sent to
// the peers. Any other sum is size() times its own. A broadcast leaves the data as it is. What is
// received from a peer is the first message that this rank sent to any; zeros where it sends none
// before it receives.
void run_loopback(const LaunchOptions& options, const RankFunction& function);

// ConfigError for a world, rank or timeout out of range; `smallest_world` is 1 where it must be
// given.
void check_options(const LaunchOptions& options, int smallest_world);
// ConfigError for an emulated fabric, where the links are what they are.
void refuse_fabric(const std::optional<grid::Fabric>& fabric);

}  // namespace weft::comm
