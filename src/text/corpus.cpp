#include "text/corpus.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "base/check.h"
#include "base/log.h"
#include "base/utf8.h"

namespace fovea {
namespace {

constexpr size_t kChunkLines = 4096, kChunkBytes = size_t{1} << 22;
constexpr int64_t kReportEvery = 10'000;

// One side of a pair while it is being read: first its text, then its ids.
struct DraftSide {
  std::string text;
  bool bad_utf8 = false, cut = false;
  int64_t number = 0;
  std::vector<int32_t> ids = {};
  std::vector<int> words = {};  // result of Vocabulary::words_in(); empty without links
};

struct DraftPair {
  DraftSide source, target;
  Links links;  // links between words
};

DraftSide draft(const LineReader& reader, const TextLine& line, BadUtf8 policy) {
  DraftSide side{std::string(line.text), false, line.cut, line.number};
  const size_t bad = find_invalid_utf8(side.text);
  if (bad == std::string::npos) return side;
  check(policy != BadUtf8::fail, ExitCode::data, reader.where(), ": byte ", bad + 1,
        " of the line is not UTF-8; convert the file, or set bad_utf8 to skip or replace");
  if (policy == BadUtf8::replace) side.text = replace_invalid_utf8(side.text);
  side.bad_utf8 = policy == BadUtf8::skip;
  return side;
}

std::string location(const LineReader& reader, const DraftSide& side) {
  return reader.name() + ":" + std::to_string(side.number);
}

// Reads the longer file to its end, so that the message has both numbers of lines.
[[noreturn]] void fail_partner(LineReader& longer, const LineReader& shorter) {
  const int64_t first = longer.counts().lines;
  for (TextLine line; longer.next(line);) {
  }
  fail(ExitCode::data, longer.name(), " has ", with_commas(longer.counts().lines), " lines and ",
       shorter.name(), " has ", with_commas(shorter.counts().lines),
       ", expected equal numbers; first line without partner: ", longer.name(), ":", first);
}

void check_counts(const std::vector<std::string>& sources, const std::vector<std::string>& targets,
                  const std::vector<std::string>& alignments) {
  check(!sources.empty() && sources.size() == targets.size(), ExitCode::usage, "found ",
        sources.size(), " source files and ", targets.size(),
        " target files; give the same number of both, at least one");
  check(alignments.empty() || alignments.size() == sources.size(), ExitCode::usage, "found ",
        sources.size(), " source files and ", alignments.size(),
        " alignment files; give one alignment file for each source file");
}

// A pair of lines as they are in the files.
struct LinePair {
  TextLine source, target;
  Links links = {};
};

// Reads the next line of all files. Returns false at the end of all files.
bool next_pair(const PairReaders& files, LinePair& pair) {
  LineReader &source = files.source, &target = files.target;
  const bool more_source = source.next(pair.source), more_target = target.next(pair.target);
  if (more_source && !more_target) fail_partner(source, target);
  if (more_target && !more_source) fail_partner(target, source);
  if (!files.links) return more_source;
  const bool more_links = next_pharaoh(*files.links, pair.links);
  if (more_source && !more_links) fail_partner(source, *files.links);
  if (more_links && !more_source) fail_partner(*files.links, source);
  return more_source;
}

// Reads a chunk of pairs. The result is empty if all files are at their end.
std::vector<DraftPair> read_chunk(const PairReaders& files, BadUtf8 policy) {
  std::vector<DraftPair> chunk;
  size_t bytes = 0;
  for (LinePair pair; chunk.size() < kChunkLines && bytes < kChunkBytes;) {
    if (!next_pair(files, pair)) break;
    bytes += pair.source.text.size() + pair.target.text.size() + pair.links.size() * sizeof(Link);
    chunk.push_back({draft(files.source, pair.source, policy),
                     draft(files.target, pair.target, policy), std::move(pair.links)});
  }
  return chunk;
}

// The range [first, end) of the pieces of a word. `words` is a result of Vocabulary::words_in().
std::pair<int, int> pieces_of(const std::vector<int>& words, int word) {
  const auto [first, last] = std::equal_range(words.begin(), words.end() - 1, word);
  return {static_cast<int>(first - words.begin()), static_cast<int>(last - words.begin())};
}

// Links every piece of a source word with every piece of the linked target word.
Links piece_links(const DraftPair& pair, const LineReader& reader) {
  const int sources = pair.source.words.back(), targets = pair.target.words.back();
  Links pieces;
  for (const auto& [source, target] : pair.links) {
    check(source < sources && target < targets, ExitCode::data, location(reader, pair.source),
          ": link ", source, "-", target, " is out of range: source words are 0 to ", sources - 1,
          ", target words are 0 to ", targets - 1,
          "; check that these are source-target links of this text");
    const auto [from, from_end] = pieces_of(pair.source.words, source);
    const auto [to, to_end] = pieces_of(pair.target.words, target);
    for (int t = to; t < to_end; ++t)
      for (int s = from; s < from_end; ++s) pieces.emplace_back(s, t);
  }
  return pieces;
}

// Opens the alignment file of the i-th pair of files. Returns no reader if there are no alignments.
std::optional<LineReader> open_links(const std::vector<std::string>& alignments, size_t i) {
  if (alignments.empty()) return {};
  return LineReader(alignments[i], kLongestLinks);
}

bool is_blank(const DraftSide& side) { return side.ids.empty() && !side.cut; }

bool too_long(const DraftSide& side, int64_t limit) {
  return side.cut || (limit > 0 && static_cast<int64_t>(side.ids.size()) > limit);
}

bool exceeds_ratio(const DraftSide& a, const DraftSide& b, double limit) {
  const auto [low, high] = std::minmax({a.ids.size(), b.ids.size()});
  return limit > 0 && static_cast<double>(high) > limit * static_cast<double>(low);
}

}  // namespace

void CorpusOptions::describe(Settings& s) {
  s.field("max_length", max_length, "maximum number of pieces of either side; 0 means no limit")
      .at_least(0);
  s.field("max_ratio", max_ratio,
          "maximum of longer side ÷ shorter side, in pieces; 0 means no limit")
      .at_least(0);
  s.field("max_bytes", max_bytes, "a line with more bytes is too long, whatever its pieces")
      .at_least(16);
  s.choice("bad_utf8", bad_utf8,
           {{"skip", BadUtf8::skip}, {"fail", BadUtf8::fail}, {"replace", BadUtf8::replace}},
           "what to do with lines that are not UTF-8");
}

std::string CorpusCounts::summary() const {
  std::string text = "kept " + with_commas(kept) + " of " + with_commas(read);
  const char* separator = ": ";
  const auto reason = [&](int64_t count, const std::string& what) {
    if (count == 0) return;
    text += separator + with_commas(count) + " " + what;
    separator = ", ";
  };
  reason(empty, "empty");
  reason(too_long, "too long (first " + first_too_long + ")");
  reason(bad_utf8, "bad UTF-8");
  reason(ratio, "above the length ratio");
  return text;
}

std::string CorpusCounts::removed() const {
  const auto counted = [](int64_t n, const std::string& what) {
    return with_commas(n) + " " + what + (n == 1 ? "" : "s");
  };
  std::string text;
  if (carriage_returns > 0) text = counted(carriage_returns, "carriage return");
  if (byte_order_marks > 0)
    text += (text.empty() ? "" : " and ") + counted(byte_order_marks, "byte order mark");
  return text.empty() ? text : "removed " + text;
}

Corpus Corpus::read(const std::vector<std::string>& sources,
                    const std::vector<std::string>& targets, const Vocabulary& source_vocabulary,
                    const Vocabulary& target_vocabulary, const CorpusOptions& options,
                    const std::vector<std::string>& alignments) {
  check_counts(sources, targets, alignments);
  Corpus corpus;
  const auto limit = static_cast<size_t>(options.max_bytes);
  for (size_t i = 0; i < sources.size(); ++i) {
    LineReader source(sources[i], limit), target(targets[i], limit);
    std::optional<LineReader> links = open_links(alignments, i);
    corpus.read({source, target, links ? &*links : nullptr}, source_vocabulary, target_vocabulary,
                options);
    if (!options.weights.empty()) corpus.parts_.push_back({corpus.size(), options.weights.at(i)});
  }
  return corpus;
}

void Corpus::read(const PairReaders& files, const Vocabulary& source_vocabulary,
                  const Vocabulary& target_vocabulary, const CorpusOptions& options) {
  const auto encode = [&](const Vocabulary& vocabulary, DraftSide& side) {
    if (side.cut) return;
    side.ids = vocabulary.encode(side.text);
    if (files.links) side.words = vocabulary.words_in(side.text);
  };
  for (;;) {
    auto chunk = read_chunk(files, options.bad_utf8);
    if (chunk.empty()) break;
#pragma omp parallel for schedule(dynamic, 64)
    for (size_t i = 0; i < chunk.size(); ++i) {
      if (chunk[i].source.bad_utf8 || chunk[i].target.bad_utf8) continue;
      encode(source_vocabulary, chunk[i].source);
      encode(target_vocabulary, chunk[i].target);
    }
    for (const DraftPair& pair : chunk) {
      const DraftSide &s = pair.source, &t = pair.target;
      if (++counts_.read % kReportEvery == 0 && options.progress) options.progress(counts_.read);
      const bool long_source = too_long(s, options.max_length);
      if (s.bad_utf8 || t.bad_utf8) {
        ++counts_.bad_utf8;
      } else if (is_blank(s) || is_blank(t)) {
        ++counts_.empty;
      } else if (long_source || too_long(t, options.max_length)) {
        if (counts_.too_long++ == 0)
          counts_.first_too_long =
              long_source ? location(files.source, s) : location(files.target, t);
      } else if (exceeds_ratio(s, t, options.max_ratio)) {
        ++counts_.ratio;
      } else {
        add(s.ids, t.ids, counts_.read);
        if (files.links) link(piece_links(pair, *files.links));
      }
    }
  }
  for (const LineReader* reader : {&files.source, &files.target}) {
    counts_.carriage_returns += reader->counts().carriage_returns;
    counts_.byte_order_marks += reader->counts().byte_order_marks;
  }
  if (options.progress) options.progress(counts_.read);
}

void Corpus::add(std::span<const int32_t> source, std::span<const int32_t> target, int64_t line) {
  source_.add(source);
  target_.add(target);
  lines_.push_back(line);
  ++counts_.kept;
}

void Corpus::link(Links pieces) {
  const auto by_target = [](const Link& a, const Link& b) {
    return std::pair(a.second, a.first) < std::pair(b.second, b.first);
  };
  std::sort(pieces.begin(), pieces.end(), by_target);
  links_.insert(links_.end(), pieces.begin(), pieces.end());
  link_offsets_.push_back(std::ssize(links_));
  assert(link_offsets_.size() == lines_.size() + 1);
}

SentencePair Corpus::operator[](int64_t i) const {
  SentencePair pair{source_.sentence(i), target_.sentence(i), lines_[i]};
  if (linked()) {
    const int64_t first = link_offsets_[i], end = link_offsets_[i + 1];
    pair.links = std::span(links_).subspan(first, end - first);
  }
  return pair;
}

uint64_t Corpus::fingerprint() const {
  uint64_t hash = 0xCBF29CE484222325u;
  const auto mix = [&hash](uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  };
  for (const Side* side : {&source_, &target_}) {
    for (const int32_t id : side->ids) mix(static_cast<uint32_t>(id));
    for (const int64_t offset : side->offsets) mix(static_cast<uint64_t>(offset));
  }
  if (linked()) {
    for (const auto& [source, target] : links_) {
      mix(static_cast<uint32_t>(source));
      mix(static_cast<uint32_t>(target));
    }
    for (const int64_t offset : link_offsets_) mix(static_cast<uint64_t>(offset));
  }
  return hash;
}

std::span<const int32_t> Corpus::Side::sentence(int64_t i) const {
  return std::span(ids).subspan(offsets[i], length(i));
}

// The vectors grow by a quarter instead of doubling, because a vector that grows keeps both buffers
// in memory for a while.
void Corpus::Side::add(std::span<const int32_t> sentence) {
  const size_t needed = ids.size() + sentence.size();
  if (needed > ids.capacity()) ids.reserve(std::max(needed, ids.capacity() + ids.capacity() / 4));
  ids.insert(ids.end(), sentence.begin(), sentence.end());
  offsets.push_back(static_cast<int64_t>(ids.size()));
}

void check_partners(const std::vector<std::string>& sources,
                    const std::vector<std::string>& targets,
                    const std::vector<std::string>& alignments) {
  check_counts(sources, targets, alignments);
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] == "-" || targets[i] == "-") continue;
    if (!alignments.empty() && alignments[i] == "-") continue;
    LineReader source(sources[i]), target(targets[i]);
    std::optional<LineReader> links = open_links(alignments, i);
    const PairReaders files{source, target, links ? &*links : nullptr};
    for (LinePair pair; next_pair(files, pair);) {
    }
  }
}

CleanLine clean_line(std::string_view line, int64_t max_bytes) {
  CleanLine clean;
  if (static_cast<int64_t>(line.size()) > max_bytes) {
    clean.cut = true;
    // Moves the end back to the start of a character, but by at most 3 bytes. Otherwise a long run
    // of continuation bytes (invalid UTF-8) would all be lost.
    size_t end = static_cast<size_t>(max_bytes);
    for (int back = 0; back < 3 && end > 0 && (line[end] & 0xC0) == 0x80; ++back) --end;
    line = line.substr(0, end);
  }
  clean.replaced = !is_utf8(line);
  clean.text = clean.replaced ? replace_invalid_utf8(line) : std::string(line);
  for (char& c : clean.text)
    if (c == '\n' || c == '\r') c = ' ';
  return clean;
}

}  // namespace fovea
