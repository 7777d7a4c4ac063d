#include "view/annotations.h"

#include "base/check.h"

namespace fovea {
namespace {

using Kind = MatrixSeries::Kind;

// Returns the number of values that a series of this kind has per target word; 0 means any number.
size_t places_of(Kind kind) {
  switch (kind) {
    case Kind::position:
    case Kind::frontier:
      return 1;
    case Kind::window:
      return 2;
    case Kind::gaussian:
      return 4;
    case Kind::centres:
    case Kind::chosen:
      break;
  }
  return 0;
}

}  // namespace

std::vector<const MatrixSeries*> MatrixAnnotations::all(Kind kind) const {
  std::vector<const MatrixSeries*> found;
  for (const MatrixSeries& each : series)
    if (each.kind == kind) found.push_back(&each);
  return found;
}

bool MatrixAnnotations::bars(size_t i, size_t j) const {
  const float middle = static_cast<float>(j);
  for (const MatrixSeries& each : series) {
    const std::vector<float>& places = each.places[i];
    if (each.kind == Kind::window && (middle < places[0] || middle > places[1])) return true;
    if (each.kind == Kind::frontier && middle < places[0]) return true;
  }
  return false;
}

void check_marks(const MatrixAnnotations& marks, size_t target, size_t source) {
  for (const MatrixSeries& each : marks.series) {
    check(each.places.size() == target, ExitCode::data, "attention of ", target,
          " target words has ", each.places.size(), " entries of ", each.name);
    const size_t wanted = places_of(each.kind);
    for (const std::vector<float>& places : each.places) {
      check(wanted == 0 || places.size() == wanted, ExitCode::data, each.name,
            ": a target word has ", places.size(), " places, expected ", wanted);
      for (size_t k = 0; each.kind == Kind::chosen && k < places.size(); ++k)
        check(places[k] >= 0 && places[k] < static_cast<float>(source), ExitCode::data,
              "a choice of source word ", places[k], " of ", source);
    }
  }
}

}  // namespace fovea
