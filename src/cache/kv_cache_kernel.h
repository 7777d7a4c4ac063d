#pragma once

#include "cache/kv_cache.h"
#include "ops/attention_kernel.h"
#include "tensor/matrix.h"

// Kernels of the cache on a GPU. Each row of a step has one new word. The kernels read everything
// that changes between steps from the device's memory, so that a step can be captured once and
// replayed.
namespace fovea::kernel {

// Note [Pages of steps]
// Page t has the keys and values of the words of step t; there is one such page per layer. The word
// of row r is line r of the page; r is called its slot. A table has one row per live row: column t
// is the slot of its word of step t. If the search reorders rows, only the rows of the table are
// copied, and keys and values never move. Each step adds a column.
struct StepHeader {
  int32_t rows, step;     // live rows, number of previous words
  const int32_t* before;  // the table of slots of the previous step
  int32_t* table;
  int32_t before_stride, stride;
  const void* const* pages;  // [1 + steps, layers]: row 0 is the source, row 1 + t page t
};

// Pointers to the inputs of a step in the device's memory.
struct StepControl {
  const StepHeader* header;
  const int32_t* parents;                      // per row: its row in the previous step
  const int32_t *source_first, *source_words;  // per row: its words in the source
  int64_t rows;                                // number of rows, padding included
};

// table[r] = before[parents[r]], followed by the slot of the new word, which is r.
void extend_table(Cuda on, const StepControl& control);

// The arguments of attend_words() and attend_source().
template <class T>
struct StepAttention {
  StepControl control;
  Matrix<const T> q;  // [rows, D]; for attend_words() qkv [rows, 3D]
  int64_t layers, layer, heads;
  Matrix<T> y;                           // [rows, D]
  DistanceScores<float> distances = {};  // for the row's own words
};
template <class T>
void attend_words(Cuda on, const StepAttention<T>& in);
template <class T>
void attend_source(Cuda on, const StepAttention<T>& in);
// Like attend_words() and attend_source(), but only for common shapes of whole rows, without
// distance scores. Return false without a launch for any other shape.
bool attend_words_whole(Cuda on, const StepAttention<bf16>& in);
bool attend_source_whole(Cuda on, const StepAttention<bf16>& in);

// y_r = f_r c_r + (1 − f_r) x_r, where c_r is the y of the previous word of row r, or 0.
struct StepAverage {
  StepControl control;
  Matrix<const float> f, x;  // [rows, D]
  int64_t layers, layer;
  Matrix<float> y;
};
void average_words(Cuda on, const StepAverage& in);

}  // namespace fovea::kernel
