#include <mpi.h>

#include <array>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/comm/rendezvous/place.h"
#include "weft/comm/rendezvous/socket.h"

namespace weft::comm::rendezvous {
namespace {

void check_meeting(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  throw base::SystemError(base::text("{} failed (error {})", call, code));
}

}  // namespace

MeetingPoint meet_over_mpi() {
  int provided = 0;
  check_meeting(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided),
                "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0, length = 0, port = 0;
  check_meeting(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  if (rank == 0) {
    check_meeting(MPI_Get_processor_name(name.data(), &length), "MPI_Get_processor_name");
    port = free_port();
  }
  check_meeting(MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, MPI_COMM_WORLD),
                "MPI_Bcast");
  check_meeting(MPI_Bcast(&port, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
  check_meeting(MPI_Finalize(), "MPI_Finalize");
  name.back() = '\0';
  return {.machine = name.data(), .port = port};
}

}  // namespace weft::comm::rendezvous
