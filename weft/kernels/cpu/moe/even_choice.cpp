#include "weft/kernels/cpu/moe/even_choice.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "weft/base/check.h"

namespace weft::kernels::cpu {
namespace {

// Deck of cards, shuffled anew whenever it is used up.
class Deck {
 public:
  explicit Deck(std::int64_t size) : cards_(static_cast<std::size_t>(size)), next_(cards_.size()) {
    std::iota(cards_.begin(), cards_.end(), 0);
  }

  // Deals `count` different cards.
  std::vector<std::int32_t> deal(std::int64_t count, std::mt19937& random) {
    std::vector<std::int32_t> hand;
    while (std::ssize(hand) < count) {
      if (next_ == cards_.size()) shuffle(random);
      const auto first = cards_.begin() + static_cast<std::ptrdiff_t>(next_);
      const auto card = std::find_if(first, cards_.end(), [&](std::int32_t candidate) {
        return std::ranges::find(hand, candidate) == hand.end();
      });
      CHECK(card != cards_.end(), "{} different of {} cards", count, cards_.size());
      std::iter_swap(first, card);
      hand.push_back(cards_[next_++]);
    }
    dealt_ += count;
    return hand;
  }
  std::int64_t dealt() const { return dealt_; }  // cards dealt so far

 private:
  // std::shuffle's order depends on the library; this order does not.
  void shuffle(std::mt19937& random) {
    for (std::size_t i = cards_.size(); i > 1; --i) std::swap(cards_[i - 1], cards_[random() % i]);
    next_ = 0;
  }

  std::vector<std::int32_t> cards_;
  std::size_t next_;
  std::int64_t dealt_ = 0;
};

}  // namespace

void choose_evenly(std::span<std::int32_t> chosen,
                   std::int64_t k,
                   std::int64_t experts,
                   const GroupLimit& limit) {
  std::mt19937 random;
  const std::int64_t width = experts / limit.groups;
  Deck groups(limit.groups);
  std::vector<Deck> members(static_cast<std::size_t>(limit.groups), Deck(width));
  const auto dealt_from = [&](std::int32_t group) {
    return members[static_cast<std::size_t>(group)].dealt();
  };
  for (std::size_t token = 0; token * static_cast<std::size_t>(k) < chosen.size(); ++token) {
    const auto own =
        chosen.subspan(token * static_cast<std::size_t>(k), static_cast<std::size_t>(k));
    std::size_t at = 0;
    std::int64_t groups_left = limit.kept;
    std::vector<std::int32_t> kept = groups.deal(limit.kept, random);
    std::ranges::stable_sort(kept, {}, dealt_from);  // if shares differ, the first are larger
    for (const std::int32_t group : kept) {
      const auto experts_left = static_cast<std::int64_t>(own.size() - at);
      const std::int64_t share = (experts_left + groups_left - 1) / groups_left;
      --groups_left;
      for (const std::int32_t member : members[static_cast<std::size_t>(group)].deal(share, random))
        own[at++] = static_cast<std::int32_t>(group * width) + member;
    }
    std::ranges::sort(own);
  }
}

void choose_lopsidedly(std::span<std::int32_t> chosen,
                       std::int64_t k,
                       std::int64_t experts,
                       const GroupLimit& limit) {
  choose_evenly(chosen, k, experts, limit);
  std::vector<std::int32_t> lowest;
  for (std::int64_t group = 0; group < limit.kept; ++group) {
    const std::int64_t left = k - std::ssize(lowest), groups_left = limit.kept - group;
    const std::int64_t share = (left + groups_left - 1) / groups_left;
    for (std::int64_t member = 0; member < share; ++member) {
      lowest.push_back(static_cast<std::int32_t>(group * (experts / limit.groups) + member));
    }
  }
  const auto width = static_cast<std::size_t>(k);
  for (std::size_t at = 0; at + width <= chosen.size(); at += 2 * width) {
    std::ranges::copy(lowest, chosen.subspan(at).begin());
  }
}

}  // namespace weft::kernels::cpu
