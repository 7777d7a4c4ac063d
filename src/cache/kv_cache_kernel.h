#pragma once

#include "cache/kv_cache.h"
#include "ops/attention_kernel.h"
#include "tensor/matrix.h"

// Kernels of the cache on a GPU. Each row (hypothesis) has one new word per step. Kernels read
// everything that changes between steps from the device's memory, so that a step can be captured
// once and then replayed.
namespace fovea::kernel {

// Note [Pages of steps]
// A page holds the keys and values of one step t in one layer: line r of the page belongs to the
// word that row r read in step t. r is called the slot of the word. A table has one row per live
// row. Column t of that row is the slot of its word of step t. If the search reorders rows, only
// rows of the table are copied; keys and values never move. Each step adds a column.
struct StepHeader {
  int32_t rows, step;     // number of live rows, number of previous words of each row
  const int32_t* before;  // the table of slots after the previous step
  int32_t* table;
  int32_t before_stride, stride;
  const void* const* pages;  // [1 + steps, layers]: row 0 is the source, row 1 + t is page t
};

// Pointers to the inputs of a step, which are in the device's memory.
struct StepControl {
  const StepHeader* header;
  const int32_t* parents;                      // per row: the previous row that it continues
  const int32_t *source_first, *source_words;  // per row: its first source word, its number of them
  int64_t rows;                                // number of rows, padding included
};

// table[r] = before[parents[r]], followed by the slot of the new word, which is r, for each row r.
void extend_table(Cuda on, const StepControl& control);

// The arguments of attend_words() and attend_source().
template <class T>
struct StepAttention {
  StepControl control;
  Matrix<const T> q;  // [rows, D]; for attend_words(): qkv [rows, 3D]
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
