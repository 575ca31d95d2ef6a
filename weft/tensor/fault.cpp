#include "weft/tensor/fault.h"

#include <algorithm>
#include <atomic>

#include "weft/base/check.h"

namespace weft::tensor {
namespace {

using base::text;

// Origin of bad data: this rank, or other ranks.
enum class Blame { Ourselves, Outside };

struct Told {
  Blame blame;
  std::string what;
};

Told announced(const Fault& fault, std::string_view what) {
  const auto& n = fault.numbers;
  return {Blame::Outside,
          text("member {} announces {} {}; it can have at most {}", n[0], n[1], what, n[2])};
}

// Table of codes and texts.
Told tell(const Fault& fault) {
  const auto& n = fault.numbers;
  switch (fault.code) {
    case FaultCode::RowOutOfRange:
      return {Blame::Ourselves, text("row {} of {}", n[0], n[1])};
    case FaultCode::ExpertOutOfRange:
      return {Blame::Ourselves, text("expert {} of {}", n[0], n[1])};
    case FaultCode::LabelOutOfRange:
      return {Blame::Ourselves, text("label {} of a vocabulary of {}", n[0], n[1])};
    case FaultCode::TokenOutOfRange:
      return {Blame::Ourselves, text("token {} of a vocabulary of {}", n[0], n[1])};
    case FaultCode::TooManyRowsOfToken:
      return {Blame::Ourselves, text("token {} has more than {} rows", n[0], n[1])};
    case FaultCode::CountTooLarge:
      return {Blame::Ourselves, text("count {} has no room for its code", n[0])};
    case FaultCode::RowsBeyondRoom:
      return {Blame::Outside, text("{} rows, and room for {}", n[0], n[1])};
    case FaultCode::RowsOfExpertBeyondRoom:
      return {Blame::Outside, text("{} rows for expert {}, and room for {}", n[0], n[1], n[2])};
    case FaultCode::RowsOfExpertBeyondRest:
      return {Blame::Outside,
              text("{} rows for expert {} of this rank, and room for {} more", n[0], n[1], n[2])};
    case FaultCode::ChoiceOutOfOrder:
      return {Blame::Outside,
              text("token {} chose expert {} after group {} of {} groups of {} experts from {} on",
                   n[0],
                   n[1],
                   n[2],
                   n[3],
                   n[4],
                   n[5])};
    case FaultCode::RowsForMachineAnnounced:
      return announced(fault, "rows for a machine");
    case FaultCode::RowsForRankAnnounced:
      return announced(fault, "rows for a rank");
    case FaultCode::SlotsForRankAnnounced:
      return announced(fault, "slots for a rank");
    case FaultCode::SlotsAnnounced:
      return announced(fault, "slots in all");
    case FaultCode::CountsDamaged:
      return {Blame::Outside,
              text("number {} of the counts of member {} arrived damaged ({:#x}): the transport "
                   "between the ranks loses or changes bytes",
                   n[0],
                   n[1],
                   static_cast<std::uint64_t>(n[2]))};
  }
  UNREACHABLE("fault {}", static_cast<std::int64_t>(fault.code));
}

}  // namespace

void raise(FaultWord& word,
           std::uint64_t ticket,
           FaultCode code,
           std::initializer_list<std::int64_t> numbers) {
  const std::atomic_ref<std::int64_t> state(word.state);
  std::int64_t expected = FaultWord::Free;
  if (!state.compare_exchange_strong(expected, FaultWord::Taken)) return;
  word.fault.code = code;
  word.fault.ticket = ticket;
  std::copy_n(numbers.begin(),
              std::min(numbers.size(), Fault::kNumbers),
              word.fault.numbers.begin());
  state.store(FaultWord::Told, std::memory_order_release);
}

std::optional<Fault> fault_in(const FaultWord& word) {
  const std::atomic_ref<std::int64_t> state(const_cast<std::int64_t&>(word.state));
  if (state.load(std::memory_order_acquire) != FaultWord::Told) return std::nullopt;
  return word.fault;
}

void throw_fault(const Fault& fault) {
  const Told told = tell(fault);
  switch (told.blame) {
    case Blame::Ourselves:
      throw base::InternalError(text("CHECK failed on the device: {}", told.what));
    case Blame::Outside:
      throw base::SystemError(told.what);
  }
  UNREACHABLE("blame {}", static_cast<int>(told.blame));
}

}  // namespace weft::tensor
