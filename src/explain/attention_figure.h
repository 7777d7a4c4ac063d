#pragma once

#include <string>
#include <vector>

#include "decode/model_bundle.h"
#include "explain/attention_picture.h"
#include "view/svg.h"

namespace fovea {

// Which attention a figure shows.
struct FigureChoice {
  std::string kind = "cross";     // or "encoder", "decoder"
  int64_t layer = -1, head = -1;  // −1: the mean of all layers or of all heads
  PictureUnit unit = PictureUnit::words;
};

// The attention of one kind for one sentence pair, as matrices to draw. Both sentences are ids that
// end with </s>.
class AttentionFigure {
 public:
  // Computes the attention. If the model has no such kind, layer or head, throws ExitCode::usage.
  AttentionFigure(const ModelBundle& bundle, std::span<const int32_t> source,
                  std::span<const int32_t> target, std::span<const AttentionMap> maps,
                  FigureChoice choice);

  AttentionMatrix matrix() const { return matrix(choice_.layer, choice_.head); }
  AttentionGrid grid() const;  // one matrix for each head of each layer

 private:
  AttentionMatrix matrix(int64_t layer, int64_t head) const;
  std::string title(int64_t layer, int64_t head) const;

  FigureChoice choice_;
  std::string score_;  // name of the score function, for global attention
  PictureSide rows_, cols_;
  std::vector<AttentionMap> maps_;
  int64_t layers_ = 0, heads_ = 0;
};

}  // namespace fovea
