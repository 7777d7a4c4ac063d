#pragma once

#include "cache/kv_cache.h"
#include "tensor/matrix.h"

// Kernels of the cache on a GPU, one word per row. They read everything that changes between steps
// from the device's memory, so that a step can be captured once and replayed.
namespace fovea::kernel {

// Note [Pages of steps]
// The keys and values of the words of step t are in page t, one page per layer. A word is in the
// line of its row number in that step: its slot. A table gives for each row the slots of its words,
// column t for step t. When the search reorders rows, it copies their rows of the table and adds
// one column. Keys and values never move.
struct StepHeader {
  int32_t rows, step;     // live rows, number of previous words
  const int32_t* before;  // the table of the previous step
  int32_t* table;
  int32_t before_stride, stride;
  const void* const* pages;  // [1 + steps, layers]: the first row is that of the source
};

// Pointers to the inputs of a step in the device's memory.
struct StepControl {
  const StepHeader* header;
  const int32_t* parents;                      // rows of the previous step
  const int32_t *source_first, *source_words;  // of each row
  int64_t rows;                                // capacity
};

// table[r] = before[parents[r]], and the slot of the new word, which is r.
void extend_table(Cuda on, const StepControl& control);

template <class T>
struct StepAttention {
  StepControl control;
  Matrix<const T> q;  // [rows, D], or qkv [rows, 3D] for the row's own words
  int64_t layers, layer, heads;
  Matrix<T> y;  // [rows, D]
};
template <class T>
void attend_words(Cuda on, const StepAttention<T>& in);
template <class T>
void attend_source(Cuda on, const StepAttention<T>& in);
// The same for common shapes. Returns false without a launch for any other shape.
bool attend_words_whole(Cuda on, const StepAttention<bf16>& in);
bool attend_source_whole(Cuda on, const StepAttention<bf16>& in);

}  // namespace fovea::kernel
