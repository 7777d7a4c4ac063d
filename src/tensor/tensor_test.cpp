#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tensor/arena.h"
#include "tensor/rounding.h"
#include "tensor/tape.h"
#include "tensor/workspace.h"

namespace fovea {
namespace {

TEST(Memory, BlocksAreAlignedReusedAndJoined) {
  const auto before = memory_use().in_use;
  std::byte* first = nullptr;
  {
    const Buffer a = allocate(1000, Cpu{}), b = allocate(3000, Cpu{});
    first = a.get();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.get()) % 64, 0u);
    EXPECT_EQ(memory_use().in_use, before + 1024 + 3008);
  }
  EXPECT_EQ(memory_use().in_use, before);
  EXPECT_EQ(allocate(4000, Cpu{}).get(), first);  // the two free blocks were joined
}

TEST(Memory, TheSameSizesGetTheSameAddresses) {
  auto addresses = [] {
    std::vector<std::byte*> all;
    std::vector<Buffer> held;
    for (const size_t bytes : {100u, 5000u, 64u, 70000u, 1u}) {
      held.push_back(allocate(bytes, Cpu{}));
      all.push_back(held.back().get());
      if (held.size() == 3) held.erase(held.begin());
    }
    return all;
  };
  EXPECT_EQ(addresses(), addresses());
}

// Chunks that touch become one block.
TEST(Memory, TouchingChunksServeOneLargeBlock) {
  constexpr size_t kChunk = 256;
  static std::byte memory[4 * kChunk];
  static std::byte* next = memory + sizeof(memory);
  Arena arena(kChunk, [](size_t bytes, const MemoryUse&) { return next -= bytes; });
  arena.take(kChunk);
  arena.give_back(arena.take(kChunk), kChunk);
  EXPECT_EQ(arena.take(384), memory);  // the third and fourth chunk, joined with the second
  EXPECT_EQ(arena.take(384), memory + 384);
  EXPECT_EQ(arena.use().reserved, sizeof(memory));
}

// A device with 640 bytes that gives and takes blocks.
struct Device640 {
  static inline std::byte memory[640];
  static inline std::map<std::byte*, size_t> taken;

  static std::byte* more(size_t bytes, const MemoryUse&) {
    std::byte* at = memory;
    for (const auto& [start, size] : taken)
      if (at + bytes > start) at = std::max(at, start + size);
    check(at + bytes <= memory + sizeof(memory), ExitCode::memory, "no more");
    taken[at] = bytes;
    return at;
  }
  static void less(std::byte* start, size_t bytes) {
    EXPECT_EQ(taken.at(start), bytes);
    taken.erase(start);
  }
};

TEST(Memory, ReturnsFreeBlocksIfALargerOneIsNeeded) {
  for (const auto blocks : {Arena::Blocks::apart, Arena::Blocks::joined}) {
    Device640::taken.clear();
    Arena arena(128, Device640::more, Device640::less, blocks);
    std::vector<std::byte*> pieces;
    for (int i = 0; i < 5; ++i) pieces.push_back(arena.take(128));
    EXPECT_THROW(arena.take(128), Error);
    for (const int i : {0, 2, 3}) arena.give_back(pieces[static_cast<size_t>(i)], 128);
    EXPECT_EQ(arena.take(256), Device640::memory + 256);
    EXPECT_THROW(arena.take(256), Error);  // but the arena returned the free blocks
    EXPECT_EQ(arena.use().reserved, 512u);
    arena.give_back(Device640::memory + 256, 256);
    arena.give_back(pieces[1], 128);
    arena.release();
    EXPECT_EQ(arena.use().reserved, 128u);
    EXPECT_EQ(arena.use().in_use, 128u);
    EXPECT_EQ(Device640::taken.size(), 1u);
  }
}

TEST(Memory, DoesNotJoinSeparateBlocks) {
  Device640::taken.clear();
  Arena arena(128, Device640::more, nullptr, Arena::Blocks::apart);
  std::byte* const first = arena.take(128);
  std::byte* const second = arena.take(128);
  arena.give_back(first, 128);
  arena.give_back(second, 128);
  EXPECT_EQ(arena.take(256), Device640::memory + 256);
}

TEST(Memory, SeparatePiecesHaveTheRequestedSize) {
  Device640::taken.clear();
  Arena arena(128, Device640::more, Device640::less);
  std::byte* const shared = arena.take(64);
  arena.take_singly();
  std::byte* const single = arena.take(5);
  EXPECT_EQ(Device640::taken.at(single), 5u);
  arena.give_back(single, 5);
  EXPECT_EQ(Device640::taken.size(), 1u);
  arena.give_back(shared, 64);
  EXPECT_EQ(arena.use().in_use, 0u);
}

TEST(Memory, AllocationsStopAtTheLimit) {
  release_memory(Cpu{});
  const size_t reserved = memory_use().reserved;
  limit_memory(Cpu{}, reserved + (size_t{16} << 20));
  EXPECT_EQ(memory_at_most(Cpu{}), reserved + (size_t{16} << 20));
  std::string why;
  {
    const Buffer held = allocate(size_t{9} << 20, Cpu{});
    try {
      allocate(size_t{9} << 20, Cpu{});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::memory);
      why = error.what();
    }
  }
  limit_memory(Cpu{}, 0);
  EXPECT_NE(why.find("raise `workspace`, lower the batch size"), std::string::npos) << why;
  allocate(size_t{9} << 20, Cpu{});
}

TEST(Memory, DiscardedPagesReadAsZeros) {
  constexpr size_t kBytes = size_t{1} << 20;
  const Buffer block = allocate(kBytes, Cpu{});
  std::fill_n(block.get(), kBytes, std::byte{7});
  give_up(block.get() + 1, kBytes - 1);
  EXPECT_EQ(block.get()[0], std::byte{7});
  EXPECT_EQ(block.get()[kBytes / 2], std::byte{0});
}

TEST(Memory, AllocatingMoreThanTheMachineHasIsAnError) {
  try {
    allocate(size_t{1} << 60, Cpu{});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::memory);
  }
}

TEST(Tensor, CopiesWindowsAndViewsShareMemory) {
  const Tensor x = Tensor::of({3, 2}, std::vector<double>{1, 2, 3, 4, 5, 6}, ElementType::f32);
  const Tensor y = x, middle = x.window(1, 1);
  y.data<float>()[2] = 30;
  EXPECT_EQ(middle.values(), (std::vector<double>{30, 4}));
  EXPECT_EQ(x.view({6}).values(), (std::vector<double>{1, 2, 30, 4, 5, 6}));
}

TEST(Tensor, StoresNumbersOfEveryType) {
  for (const ElementType type :
       {ElementType::f32, ElementType::f64, ElementType::i32, ElementType::bf16}) {
    const Tensor x = Tensor::of({3}, std::vector<double>{-2, 0, 96}, type);
    EXPECT_EQ(x.values(), (std::vector<double>{-2, 0, 96}));
  }
  const Tensor x({2}, ElementType::bf16);
  x.assign(std::vector{1.00390625, 1.01171875});  // ties between two values: to the even one
  EXPECT_EQ(x.values(), (std::vector{1.0, 1.015625}));
}

// y = 2x as an op implements it.
Tensor twice(const Tensor& x) {
  Tensor y = Tensor::like(x);
  auto values = x.values();
  for (double& v : values) v *= 2;
  y.assign(values);
  return record(y, {x}, [slot = x.slot()](const Tensor& dy) {
    gather(slot, [&](const Tensor& dx, OutputMode fold) {
      auto d = dy.values(),
           old = fold == OutputMode::add ? dx.values() : std::vector<double>(d.size());
      for (size_t i = 0; i < d.size(); ++i) d[i] = 2 * d[i] + old[i];
      dx.assign(d);
    });
  });
}

TEST(Tape, SumsOverAllUses) {
  const Tensor x = Tensor::of({1}, std::vector<double>{3}, ElementType::f64);
  x.track();
  Tape tape;
  const Tensor y = twice(x);
  const Tensor z = twice(y);
  tape.backward(z, 0.5);
  EXPECT_EQ(x.grad().values()[0], 2);
  EXPECT_FALSE(y.slot()->holds());  // intermediate gradients are released
}

TEST(Tape, NothingIsRecordedWithoutATape) {
  const Tensor x = Tensor::of({1}, std::vector<double>{3}, ElementType::f64);
  x.track();
  EXPECT_FALSE(twice(x).needs_grad());
}

TEST(Tape, AMutationChangesOneContribution) {
  const Tensor x = Tensor::of({1}, std::vector<double>{3}, ElementType::f64);
  x.track();
  GradientMutation sign(GradientMutation::Kind::sign, 1);
  Tape tape;
  tape.backward(twice(x));
  EXPECT_TRUE(sign.done);
  EXPECT_EQ(x.grad().values()[0], -2);
}

TEST(Tape, RoundingNoiseChangesResultsAndGradients) {
  const Tensor x = Tensor::of({1}, std::vector<double>{3}, ElementType::f64);
  x.track();
  const RoundingNoise rounding(0x1p-10, 7);
  Tape tape;
  const Tensor y = twice(x);
  EXPECT_EQ(std::abs(y.values()[0] - 6), 6 * 0x1p-10);
  tape.backward(y);
  const double moved = std::abs(x.grad().values()[0] - 2);  // two roundings: of the seed and of the
                                                            // gradient
  EXPECT_LE(moved, 2.01 * 2 * 0x1p-10);
  EXPECT_GT(moved, 0);
}

}  // namespace
}  // namespace fovea
