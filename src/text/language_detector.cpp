#include "text/language_detector.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/sip_hash.h"
#include "base/utf8.h"
#include "text/language_profiles.h"

// Note [Detection]. The script of most letters decides first; a character of Chinese, Japanese or
// Korean counts as three letters. Some scripts have only one language. For languages of the other
// scripts, language_profiles.txt has a bias per language and weights of character n-grams. The
// score of a language is its bias plus the sum of the weights of all n-grams of one to four
// characters in the distinct words of the text, and of whole words; '_' marks the beginning and end
// of a word. The confidence is the softmax of the scores times the fraction of all letters that are
// in the script. The weights are those of a logistic regression (tools/language_profile). If too
// few trigrams of a Latin text have weights, its letters are taken as random, and no language is
// returned.
namespace fovea {
namespace {

constexpr size_t kMaxNgram = 4;  // maximum number of characters
constexpr size_t kLongestWord =
    12;  // characters of the longest whole word with a weight, including both _
constexpr double kStep = 0.25;        // unit of the weights in the table
constexpr size_t kFewestLetters = 3;  // minimum number if the script has several languages
constexpr double kKnownShare = 0.55;  // minimum fraction of known trigrams in Latin text
constexpr double kKanaShare = 0.1;    // minimum fraction of kana in Japanese text
constexpr double kJapaneseOdds =
    0.4;  // probability that a text of one Chinese character is Japanese
constexpr double kJapaneseDecay = 0.5;  // factor of this probability for each further character

struct ScriptLanguage {
  UScriptCode script;
  const char* language;
};

// Scripts in which one language is by far the most frequent.
constexpr ScriptLanguage kOneLanguage[] = {
    {USCRIPT_GREEK, "el"},     {USCRIPT_HEBREW, "he"},   {USCRIPT_GEORGIAN, "ka"},
    {USCRIPT_ARMENIAN, "hy"},  {USCRIPT_THAI, "th"},     {USCRIPT_LAO, "lo"},
    {USCRIPT_KHMER, "km"},     {USCRIPT_MYANMAR, "my"},  {USCRIPT_SINHALA, "si"},
    {USCRIPT_TAMIL, "ta"},     {USCRIPT_TELUGU, "te"},   {USCRIPT_KANNADA, "kn"},
    {USCRIPT_MALAYALAM, "ml"}, {USCRIPT_GUJARATI, "gu"}, {USCRIPT_GURMUKHI, "pa"},
    {USCRIPT_ORIYA, "or"},     {USCRIPT_ETHIOPIC, "am"}, {USCRIPT_HANGUL, "ko"},
};

struct Weight {
  size_t language;  // index into Table::languages
  float value;
};

struct ProfiledLanguage {
  std::string code;
  UScriptCode script;
  double bias;
};

// The content of language_profiles.txt.
struct Table {
  std::vector<ProfiledLanguage> languages;
  std::unordered_map<std::string_view, std::vector<Weight>> weights;

  Table();
};

int number_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int number = 0;
  [[maybe_unused]] const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  assert(end.ptr == text.data() + text.size());
  return number;
}

std::string_view next_field(std::string_view& line, char separator) {
  const size_t end = std::min(line.find(separator), line.size());
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return field;
}

// The line "de Latin -3" begins a language: code, script, bias. The line "+5 _und_ ich" gives
// n-grams of that language and their weight. The unit of bias and weight is kStep.
Table::Table() {
  std::string_view text = language_profiles();
  while (!text.empty()) {
    std::string_view line = next_field(text, '\n');
    if (line.empty() || line.starts_with('#')) continue;
    const std::string first(next_field(line, ' '));
    if (first.starts_with('+') || first.starts_with('-')) {
      const auto value = static_cast<float>(number_of(first) * kStep);
      while (!line.empty()) weights[next_field(line, ' ')].push_back({languages.size() - 1, value});
    } else {
      const std::string script(next_field(line, ' '));
      const int code = u_getPropertyValueEnum(UCHAR_SCRIPT, script.c_str());
      languages.push_back({first, static_cast<UScriptCode>(code), number_of(line) * kStep});
    }
  }
}

const Table& table() {
  static const Table table;
  return table;
}

// The distinct words of a text in lower case, as "_word_", and the number of their letters in each
// script (a Chinese, Japanese or Korean character counts as three).
struct Letters {
  std::vector<std::string> words;
  std::map<UScriptCode, size_t> scripts;
  size_t all = 0;

  explicit Letters(std::string_view text);
  void count(UChar32 c);
  void count(std::string_view word);
};

void Letters::count(UChar32 c) {
  UErrorCode error = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(c, &error);
  if (U_FAILURE(error) || script == USCRIPT_COMMON || script == USCRIPT_INHERITED) return;
  const bool kana = script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA;
  const size_t weight = kana || script == USCRIPT_HAN || script == USCRIPT_HANGUL ? 3 : 1;
  scripts[kana ? USCRIPT_JAPANESE : script] += weight;
  all += weight;
}

void Letters::count(std::string_view word) {
  for (const char32_t c : code_points(word))
    if (u_isalpha(static_cast<UChar32>(c))) count(static_cast<UChar32>(c));
}

Letters::Letters(std::string_view text) {
  std::unordered_set<std::string, TableHash> seen;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty() && seen.insert(word).second) {
      count(word);
      words.push_back(word + '_');
    }
    word.clear();
  };
  const std::string composed = nfc(text.substr(0, kDetectedBytes));
  for (const char32_t c : code_points(composed)) {
    const auto code = static_cast<UChar32>(c);
    const bool mark = (U_GET_GC_MASK(code) & U_GC_M_MASK) != 0;
    if (!u_isalpha(code) && !mark) {
      end_word();
      continue;
    }
    if (word.empty()) word += '_';
    append_utf8(word, static_cast<char32_t>(u_tolower(code)));
  }
  end_word();
}

// Calls use(n-gram, number of its characters) for each n-gram of a word that may have a weight.
template <class Use>
void for_each_ngram(std::string_view word, Use use) {
  std::vector<size_t> starts;
  for (auto at = code_points(word).begin(); at != code_points(word).end(); ++at)
    starts.push_back(at.offset());
  const size_t characters = starts.size();
  starts.push_back(word.size());
  const auto ngram = [&](size_t first, size_t count) {
    return word.substr(starts[first], starts[first + count] - starts[first]);
  };
  for (size_t count = 1; count <= kMaxNgram; ++count)
    for (size_t first = 0; first + count <= characters; ++first) use(ngram(first, count), count);
  if (characters > kMaxNgram && characters <= kLongestWord) use(word, characters);
}

// The probabilities of the languages of `script`, which has several; empty if the letters are
// random.
std::vector<DetectedLanguage> by_profile(const Letters& letters, UScriptCode script) {
  const auto& languages = table().languages;
  std::vector<double> scores(languages.size());
  for (size_t i = 0; i < languages.size(); ++i) scores[i] = languages[i].bias;
  size_t trigrams = 0, known = 0;
  for (const std::string& word : letters.words)
    for_each_ngram(word, [&](std::string_view ngram, size_t characters) {
      const auto found = table().weights.find(ngram);
      const bool has_weights = found != table().weights.end();
      trigrams += characters == 3;
      known += characters == 3 && (has_weights || ngram.size() > 3);  // é makes a trigram known
      if (!has_weights) return;
      for (const Weight& weight : found->second) scores[weight.language] += weight.value;
    });
  if (script == USCRIPT_LATIN &&
      static_cast<double>(known) < kKnownShare * static_cast<double>(trigrams))
    return {};
  std::vector<DetectedLanguage> found;
  double top = -INFINITY, total = 0;
  for (size_t i = 0; i < languages.size(); ++i)
    if (languages[i].script == script) top = std::max(top, scores[i]);
  for (size_t i = 0; i < languages.size(); ++i)
    if (languages[i].script == script) {
      found.push_back({languages[i].code, std::exp(scores[i] - top)});
      total += found.back().confidence;
    }
  for (DetectedLanguage& d : found) d.confidence /= total;
  return found;
}

// The probabilities for a text of only Chinese characters. If it is short, it may be Japanese.
std::vector<DetectedLanguage> by_characters(const Letters& letters, size_t characters) {
  std::vector<DetectedLanguage> found = by_profile(letters, USCRIPT_HAN);
  const double japanese =
      kJapaneseOdds * std::pow(kJapaneseDecay, static_cast<double>(characters) - 1);
  for (DetectedLanguage& d : found) d.confidence *= 1 - japanese;
  found.push_back({"ja", japanese});
  return found;
}

std::vector<DetectedLanguage> languages_of(const Letters& letters, UScriptCode script,
                                           size_t count) {
  if (script == USCRIPT_JAPANESE) return {{"ja", 1.0}};
  if (script == USCRIPT_HAN) return by_characters(letters, count / 3);
  for (const ScriptLanguage& one : kOneLanguage)
    if (one.script == script) return {{one.language, 1.0}};
  return count < kFewestLetters ? std::vector<DetectedLanguage>() : by_profile(letters, script);
}

}  // namespace

std::vector<DetectedLanguage> detect_language(std::string_view text) {
  Letters letters(text);
  auto& scripts = letters.scripts;
  if (scripts.empty()) return {};
  if (const size_t kana = scripts[USCRIPT_JAPANESE], han = scripts[USCRIPT_HAN];
      kana > 0 && static_cast<double>(kana) >= kKanaShare * static_cast<double>(kana + han)) {
    scripts[USCRIPT_JAPANESE] += han;
    scripts.erase(USCRIPT_HAN);
  }
  const auto [script, count] = *std::ranges::max_element(
      scripts, std::less(), [](const auto& entry) { return entry.second; });
  const double share = static_cast<double>(count) / static_cast<double>(letters.all);
  std::vector<DetectedLanguage> found = languages_of(letters, script, count);
  for (DetectedLanguage& d : found) d.confidence = std::round(1000 * share * d.confidence) / 10;
  std::ranges::stable_sort(found, std::greater(), &DetectedLanguage::confidence);
  return found;
}

DetectedLanguage sure_language(const std::vector<DetectedLanguage>& candidates) {
  if (candidates.empty() || candidates.front().confidence < kGuess) return {kUndetermined, 0};
  return candidates.front();
}

std::vector<std::string> detected_languages() {
  std::vector<std::string> codes = {"ja"};
  for (const ScriptLanguage& one : kOneLanguage) codes.emplace_back(one.language);
  for (const ProfiledLanguage& language : table().languages) codes.push_back(language.code);
  std::ranges::sort(codes);
  return codes;
}

}  // namespace fovea
