// Every closed choice a config key can hold, with the words the user types.
#pragma once

#include <array>
#include <string_view>

namespace weft::config {

enum class Precision { Fp32, Bf16 };
enum class QkNorm { None, Head, Projection };
enum class LoadBalancing { None, AuxLoss };
enum class Dispatcher { AllToAll };
enum class DecayScope { Matrices, All };
enum class LrDecay { Constant, Linear, Cosine };
enum class DataKind { Mock, Text, Indexed };
enum class CommBackend { Threads, Mpi, Fake };

// The words of an enum, in enumerator order.
template <typename Enum>
struct EnumWords;

template <>
struct EnumWords<Precision> {
  static constexpr std::array<std::string_view, 2> words{"fp32", "bf16"};
};
template <>
struct EnumWords<QkNorm> {
  static constexpr std::array<std::string_view, 3> words{"none", "head", "projection"};
};
template <>
struct EnumWords<LoadBalancing> {
  static constexpr std::array<std::string_view, 2> words{"none", "aux_loss"};
};
template <>
struct EnumWords<Dispatcher> {
  static constexpr std::array<std::string_view, 1> words{"alltoall"};
};
template <>
struct EnumWords<DecayScope> {
  static constexpr std::array<std::string_view, 2> words{"matrices", "all"};
};
template <>
struct EnumWords<LrDecay> {
  static constexpr std::array<std::string_view, 3> words{"constant", "linear", "cosine"};
};
template <>
struct EnumWords<DataKind> {
  static constexpr std::array<std::string_view, 3> words{"mock", "text", "indexed"};
};
template <>
struct EnumWords<CommBackend> {
  static constexpr std::array<std::string_view, 3> words{"threads", "mpi", "fake"};
};

template <typename Enum>
constexpr std::string_view word(Enum value) {
  return EnumWords<Enum>::words[static_cast<std::size_t>(value)];
}

}  // namespace weft::config
