// Whether this process can use a card: the driver, the cards that it shows, and the kernels that
// this build has for them. Every error says what to do.
#pragma once

#include <string_view>

namespace weft::tensor::cuda {

// At least 1; the first CUDA call of a process, as it settles how many streams can run at a time.
// SystemError where the driver is missing or too old, or shows no card.
int count_cards();

// The card of a rank: its number on the machine, modulo how many cards the process sees.
int card_of(int local_rank);

// That the current card, which has this number, has kernels in this build and can be used now;
// else SystemError.
void check_kernels(int ordinal);

// The architectures that this build has kernels for: "90a", "80 90a".
std::string_view built_for();

}  // namespace weft::tensor::cuda
