// Loads the NCCL backend, a library of its own (libweft_nccl.so), when a run asks for it. The
// program starts on machines without NCCL.
#include "weft/base/library.h"
#include "weft/comm/launch.h"
#include "weft/comm/nccl_entry.h"
#include "weft/comm/rendezvous/place.h"

namespace weft::comm {
namespace {

const NcclEntry& load_nccl() {
  return base::load_entry<NcclEntry>(
      {.file = kNcclLibrary,
       .symbol = kNcclEntrySymbol,
       .version = kNcclEntryVersion,
       .what = "NCCL backend",
       .how_to_build =
           "build it where the CUDA toolkit and NCCL (2.18 or later) are installed (cmake --build "
           "--preset release --target weft_nccl)"});
}

}  // namespace

std::span<const char* const> nccl_variables() { return rendezvous::variables(); }

std::string why_no_nccl() {
  try {
    load_nccl();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

void run_nccl(const LaunchOptions& options, const RankFunction& function) {
  check_options(options, 0);
  refuse_fabric(options.fabric);
  static const NcclEntry& kEntry = load_nccl();
  std::function<rendezvous::MeetingPoint()> meet;
  if (has_mpi()) meet = rendezvous::meet_over_mpi;
  const rendezvous::Place place = rendezvous::place_from(options.environment, options.world, meet);
  kEntry.run(place, options, function);
}

}  // namespace weft::comm
