// Error that device work finds in its data: a code and a few numbers in host-visible memory, since
// a device cannot throw. The first fault of a stream counts. Work that raises one goes on, but
// touches no memory outside its own. The stream checks when the host waits for it (a CPU stream
// after each piece of work). It keeps the fault as its error, with the label of the work that
// raised it.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>

namespace weft::tensor {

// A code's numbers are those of its text, in order; see fault.cpp.
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
  std::uint64_t ticket = 0;  // work in its stream
  std::array<std::int64_t, kNumbers> numbers{};
};

// Fault slot of plain words, writable by any device. A writer sets `state` from Free to Taken
// atomically, writes the fault, then sets Told.
struct FaultWord {
  enum State : std::int64_t { Free, Taken, Told };

  std::int64_t state = Free;
  Fault fault;
};

// Raises a fault from a thread of this process; any thread may call it.
void raise(FaultWord& word,
           std::uint64_t ticket,
           FaultCode code,
           std::initializer_list<std::int64_t> numbers);

// Fault of the word; nullopt: none has been told.
std::optional<Fault> fault_in(const FaultWord& word);

// Throws SystemError if the data came from other ranks, InternalError if it is our own.
[[noreturn]] void throw_fault(const Fault& fault);

}  // namespace weft::tensor
