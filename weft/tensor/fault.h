// What work on a device finds wrong in its data: a code and a few numbers in memory that the host
// sees, since a device cannot throw. The first fault of a stream counts; work that finds one goes
// on without touching memory that is not its own. The stream looks when the host waits for it (a
// CPU stream after each piece of work) and keeps the fault as its error, with the label of the work
// that raised it.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>

namespace weft::tensor {

// The numbers of each are those of its text, in that order; see fault.cpp.
enum class FaultCode : std::int64_t {
  RowOutOfRange,
  ExpertOutOfRange,
  LabelOutOfRange,
  TokenOutOfRange,
  TooManyRowsOfToken,
  CountTooLarge,
  RowsBeyondRoom,
  RowsOfExpertBeyondRoom,
  RowsOfExpertBeyondRest,
  ChoiceOutOfOrder,
  RowsForMachineAnnounced,
  RowsForRankAnnounced,
  SlotsForRankAnnounced,
  SlotsAnnounced,
  CountsDamaged,
};

struct Fault {
  static constexpr std::size_t kNumbers = 6;

  FaultCode code = FaultCode::RowOutOfRange;
  std::uint64_t ticket = 0;  // of the work, in its stream
  std::array<std::int64_t, kNumbers> numbers{};
};

// Plain words, so that any device can write them: it takes `state` from Free to Taken in one atomic
// step, writes the fault, and then Told.
struct FaultWord {
  enum State : std::int64_t { Free, Taken, Told };

  std::int64_t state = Free;
  Fault fault;
};

// For devices whose work runs on threads of this process; any thread may call it.
void raise(FaultWord& word,
           std::uint64_t ticket,
           FaultCode code,
           std::initializer_list<std::int64_t> numbers);

// The fault, once it is told.
std::optional<Fault> fault_in(const FaultWord& word);

// SystemError where the data came from outside (other ranks), InternalError where it is our own.
[[noreturn]] void throw_fault(const Fault& fault);

}  // namespace weft::tensor
