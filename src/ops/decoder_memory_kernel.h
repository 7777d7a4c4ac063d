#pragma once

#include "ops/decoder_memory.h"
#include "tensor/matrix.h"

// One word per row on a GPU. Kernels read whatever changes from step to step in the device's
// memory, so that a step can be recorded once and done again.
namespace fovea::kernel {

// Note [Pages of steps]
// The word that a row is fed at step t stands in page t, one for each layer, at the row's number in
// that step: its slot. A table gives for each row the slots of its words, column t for step t. When
// search reorders rows, their rows of the table are copied, and one column is added; keys and
// values stay where they are.
struct StepHeader {
  int32_t rows, step;     // rows alive, words before this one
  const int32_t* before;  // the table of the step before
  int32_t* table;
  int32_t before_stride, stride;
  const void* const* pages;  // [1 + steps, layers]: first those of the source
};

// Where a step finds what it needs, in the device's memory.
struct StepControl {
  const StepHeader* header;
  const int32_t* parents;                      // rows of the step before
  const int32_t *source_first, *source_words;  // of each row
  int64_t rows;                                // room for so many
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
// The same for common shapes; false, and nothing done, where this is none of them.
bool attend_words_whole(Cuda on, const StepAttention<bf16>& in);
bool attend_source_whole(Cuda on, const StepAttention<bf16>& in);

}  // namespace fovea::kernel
