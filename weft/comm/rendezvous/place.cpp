#include "weft/comm/rendezvous/place.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::comm::rendezvous {
namespace {

using base::text;

constexpr long long kMostRanks = 1 << 20;
constexpr long long kLargestPort = 65535;
constexpr int kUsualPort = 29517;  // default port of ranks on one machine

// torchrun's own agent listens at MASTER_PORT if this is True; ranks then use the next port.
constexpr const char* kAgentListens = "TORCHELASTIC_USE_AGENT_STORE";

constexpr std::array kVariables{"RANK",
                                "WORLD_SIZE",
                                "LOCAL_RANK",
                                "MASTER_ADDR",
                                "MASTER_PORT",
                                "OMPI_COMM_WORLD_RANK",
                                "OMPI_COMM_WORLD_SIZE",
                                "OMPI_COMM_WORLD_LOCAL_RANK",
                                "OMPI_COMM_WORLD_LOCAL_SIZE",
                                kAgentListens};

// Reads variables and collects their errors.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  bool has(const char* name) const { return environment_.contains(name); }

  std::string word(const char* name, const char* meaning) {
    const auto found = environment_.find(name);
    if (found != environment_.end() && !found->second.empty()) return found->second;
    complain(
        text("{} is not set: it is {}; torchrun sets it, or set it for every rank", name, meaning));
    return {};
  }

  int number(const char* name, const char* meaning, long long least, long long most) {
    const std::string value = word(name, meaning);
    if (value.empty()) return static_cast<int>(least);
    const std::optional<long long> number = base::parse_integer(value);
    if (number && *number >= least && *number <= most) return static_cast<int>(*number);
    complain(text("{}={}: it is {}, {} to {}", name, base::shown(value), meaning, least, most));
    return static_cast<int>(least);
  }

  void complain(std::string complaint) { complaints_.push_back(std::move(complaint)); }
  bool is_content() const { return complaints_.empty(); }
  void finish() {
    if (!complaints_.empty()) throw base::ConfigError(std::move(complaints_));
  }

 private:
  const Environment& environment_;
  std::vector<std::string> complaints_;
};

struct Names {
  const char* rank;
  const char* world;
  const char* local_rank;
};
constexpr Names kTorch{"RANK", "WORLD_SIZE", "LOCAL_RANK"};
constexpr Names kOpenMpi{"OMPI_COMM_WORLD_RANK",
                         "OMPI_COMM_WORLD_SIZE",
                         "OMPI_COMM_WORLD_LOCAL_RANK"};

Place ranks_of(Reader& reader, const Names& names) {
  Place place;
  place.world = reader.number(names.world, "the number of ranks", 1, kMostRanks);
  const long long last = reader.is_content() ? place.world - 1 : kMostRanks - 1;
  place.rank = reader.number(names.rank, "this process's rank", 0, last);
  place.local_rank =
      reader.number(names.local_rank, "this process's number on its machine", 0, last);
  return place;
}

void read_master(Reader& reader, const Environment& environment, Place& place) {
  place.address = reader.word("MASTER_ADDR", "the machine of rank 0");
  const auto agent = environment.find(kAgentListens);
  const int next = agent != environment.end() && agent->second == "True" ? 1 : 0;
  place.port =
      next +
      reader.number("MASTER_PORT", "a port that rank 0 may listen at", 1, kLargestPort - next);
}

// On several machines rank 0 listens at every address: its host name may resolve to a loopback
// address there.
void take_meeting_point(const MeetingPoint& point, bool is_one_machine, Place& place) {
  if (!is_one_machine) place.address = place.rank == 0 ? "0.0.0.0" : point.machine;
  place.port = point.port;
}

bool is_one_machine(Reader& reader, const Place& place) {
  constexpr const char* kName = "OMPI_COMM_WORLD_LOCAL_SIZE";
  if (!reader.has(kName)) return false;
  return reader.number(kName, "the number of ranks on this machine", 1, kMostRanks) == place.world;
}

void check_world(const Place& place, int wanted) {
  if (wanted == 0 || wanted == place.world) return;
  throw base::ConfigError(
      text("the run needs {} as processes, one a GPU (runtime.backend=nccl), and the launcher "
           "started {}: start {} (torchrun --nproc-per-node, or mpirun -n {})",
           base::counted(wanted, "rank"),
           place.world,
           wanted,
           wanted));
}

}  // namespace

std::span<const char* const> variables() { return kVariables; }

Place place_from(const Environment& environment,
                 int world,
                 const std::function<MeetingPoint()>& meet) {
  Reader reader(environment);
  Place place;
  if (reader.has("RANK") || reader.has("WORLD_SIZE")) {
    place = ranks_of(reader, kTorch);
    read_master(reader, environment, place);
  } else if (reader.has("OMPI_COMM_WORLD_SIZE")) {
    place = ranks_of(reader, kOpenMpi);
    const bool named = reader.has("MASTER_ADDR") || reader.has("MASTER_PORT");
    const bool is_near = is_one_machine(reader, place);
    if (!named && meet && place.world > 1) {
      reader.finish();
      take_meeting_point(meet(), is_near, place);
    } else if (named || !is_near) {
      read_master(reader, environment, place);
    } else {
      place.port = kUsualPort;
    }
  } else if (world > 1) {
    reader.complain(
        text("runtime.backend=nccl runs one process a rank, and no launcher started {} of them: "
             "use torchrun or mpirun, or set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and "
             "MASTER_PORT",
             world));
  }
  reader.finish();
  check_world(place, world);
  return place;
}

}  // namespace weft::comm::rendezvous
