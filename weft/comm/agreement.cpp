#include "weft/comm/agreement.h"

#include <optional>

#include "weft/base/check.h"

namespace weft::comm {
namespace {

std::string name_of_untrusted(std::int32_t operation) {
  const bool known = operation >= 0 && operation <= static_cast<std::int32_t>(Operation::Barrier);
  return known ? std::string(name_of(static_cast<Operation>(operation)))
               : base::text("operation {}", operation);
}

std::int32_t counterpart(std::int32_t operation) {
  switch (static_cast<Operation>(operation)) {
    case Operation::Send:
      return static_cast<std::int32_t>(Operation::Receive);
    case Operation::Receive:
      return static_cast<std::int32_t>(Operation::Send);
    case Operation::AllToAll:
    case Operation::AllGather:
    case Operation::ReduceScatter:
    case Operation::AllReduce:
    case Operation::Broadcast:
    case Operation::Barrier:
      break;
  }
  return operation;
}

// Amount in rows if the operation has rows, as the caller passed it.
std::string amount(const Terms& terms, std::int64_t bytes) {
  const bool rows =
      terms.operation == static_cast<std::int32_t>(Operation::AllToAll) && terms.extent > 0;
  return rows ? base::text("{} rows ({} bytes)", bytes / terms.extent, bytes)
              : base::text("{} bytes", bytes);
}

std::optional<std::string> difference(int me, const Terms& mine, int peer, const Terms& theirs) {
  if (theirs.operation != counterpart(mine.operation)) {
    return base::text("rank {} calls {} where rank {} calls {}",
                      me,
                      name_of_untrusted(mine.operation),
                      peer,
                      name_of_untrusted(theirs.operation));
  }
  if (mine.sequence != theirs.sequence || mine.step != theirs.step) {
    return base::text("rank {} is at call {} step {} where rank {} is at call {} step {}",
                      me,
                      mine.sequence,
                      mine.step,
                      peer,
                      theirs.sequence,
                      theirs.step);
  }
  if (mine.extent != theirs.extent) {
    const bool rows = mine.operation == static_cast<std::int32_t>(Operation::AllToAll);
    return base::text("rank {} has {} of {} bytes where rank {} has {}",
                      me,
                      rows ? "rows" : "a tensor",
                      mine.extent,
                      peer,
                      theirs.extent);
  }
  if (mine.in_bytes != theirs.out_bytes) {
    return base::text("rank {} expects {} from rank {}, which sends {}",
                      me,
                      amount(mine, mine.in_bytes),
                      peer,
                      amount(theirs, theirs.out_bytes));
  }
  if (mine.out_bytes != theirs.in_bytes) {
    return base::text("rank {} sends {} to rank {}, which expects {}",
                      me,
                      amount(mine, mine.out_bytes),
                      peer,
                      amount(theirs, theirs.in_bytes));
  }
  if (mine.in_blocks != theirs.out_blocks || mine.out_blocks != theirs.in_blocks) {
    return base::text("rank {} and rank {} exchange as many rows, in blocks of other sizes",
                      me,
                      peer);
  }
  return std::nullopt;
}

}  // namespace

Terms terms_of(const Call& call, std::span<const Part> parts_of_member) {
  std::uint64_t out = 0xcbf29ce484222325u, in = out;  // FNV-1a
  const auto mix = [](std::uint64_t& hash, std::int64_t bytes) {
    hash = (hash ^ static_cast<std::uint64_t>(bytes)) * 0x100000001b3u;
    hash ^= hash >> 32;  // mix: sizes are often multiples of large powers of two
  };
  for (const Part& part : parts_of_member) {
    mix(out, part.out_bytes);
    mix(in, part.in_bytes);
  }
  return {.sequence = call.sequence,
          .extent = call.extent,
          .out_bytes = out_bytes(parts_of_member),
          .in_bytes = in_bytes(parts_of_member),
          .out_blocks = out,
          .in_blocks = in,
          .step = call.step,
          .operation = static_cast<std::int32_t>(call.operation)};
}

void check_agreement(const Membership& group, const Terms& mine, int peer, const Terms& theirs) {
  const auto wrong = difference(group.world_rank(), mine, group.rank_of(peer), theirs);
  if (!wrong) return;
  const Call call{.operation = static_cast<Operation>(mine.operation), .sequence = mine.sequence};
  throw base::SystemError(base::text("{}: {}", describe(group, call), *wrong));
}

std::string describe(const Membership& group, const Call& call) {
  return base::text("'{}' {} #{}", group.name, name_of(call.operation), call.sequence);
}

std::string describe_late(const Membership& group,
                          const Call& call,
                          std::span<const int> late_members,
                          double timeout_seconds) {
  std::vector<int> ranks;
  for (const int member : late_members) ranks.push_back(group.rank_of(member));
  return base::text("{}: rank {} waited {} s; {} {} did not arrive",
                    describe(group, call),
                    group.world_rank(),
                    timeout_seconds,
                    base::plural(std::ssize(ranks), "rank"),
                    fmt::join(ranks, ", "));
}

}  // namespace weft::comm
