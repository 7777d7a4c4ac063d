#include "text/detector.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <unordered_map>

#include "base/utf8.h"
#include "text/language_profiles.h"

// Note [Detection]. The script that most letters belong to decides first; a character of Chinese,
// Japanese or Korean counts for three letters. Some scripts have one language. For the others
// language_profiles.txt has, for each language, a bias and weights of groups of characters. The
// score of a language is its bias and the sum of the weights of all groups of one to four
// characters in the text's words, and of whole words; '_' stands for the beginning and end of a
// word. The softmax of the scores is the confidence: the weights are those of a logistic regression
// (tools/language_profile). It is multiplied by the share of the script among all letters.
namespace fovea {
namespace {

constexpr size_t kLongestGroup = 4;     // characters
constexpr size_t kLongestWord = 12;     // characters of a whole word that has a weight, with both _
constexpr double kStep = 0.25;          // of weights in the table
constexpr size_t kFewestLetters = 3;    // of an alphabet; fewer are no evidence
constexpr double kKanaShare = 0.1;      // of kana in Japanese, at least
constexpr double kJapaneseOdds = 0.4;   // that one Chinese character alone is a Japanese word
constexpr double kJapaneseDecay = 0.5;  // of these odds with each further character

struct ScriptLanguage {
  UScriptCode script;
  const char* language;
};

// Scripts with one language that is by far the most frequent.
constexpr ScriptLanguage kOneLanguage[] = {
    {USCRIPT_GREEK, "el"},     {USCRIPT_HEBREW, "he"},   {USCRIPT_GEORGIAN, "ka"},
    {USCRIPT_ARMENIAN, "hy"},  {USCRIPT_THAI, "th"},     {USCRIPT_LAO, "lo"},
    {USCRIPT_KHMER, "km"},     {USCRIPT_MYANMAR, "my"},  {USCRIPT_SINHALA, "si"},
    {USCRIPT_TAMIL, "ta"},     {USCRIPT_TELUGU, "te"},   {USCRIPT_KANNADA, "kn"},
    {USCRIPT_MALAYALAM, "ml"}, {USCRIPT_GUJARATI, "gu"}, {USCRIPT_GURMUKHI, "pa"},
    {USCRIPT_ORIYA, "or"},     {USCRIPT_ETHIOPIC, "am"}, {USCRIPT_HANGUL, "ko"},
};

struct Weight {
  size_t language;  // its place in Table::languages
  float value;
};

struct ProfiledLanguage {
  std::string code;
  UScriptCode script;
  double bias;
};

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

// "de Latin -3" begins a language: code, script, bias. "+5 _und_ ich" are groups of one weight.
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
  static const Table made;
  return made;
}

// What counts of a text: its words in lower case as "_word_", and how many letters each script has.
struct Letters {
  std::vector<std::string> words;
  std::map<UScriptCode, size_t> scripts;
  size_t all = 0;

  explicit Letters(std::string_view text);
  void count(UChar32 c);
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

Letters::Letters(std::string_view text) {
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(word + '_');
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
    if (!mark) count(code);
    if (word.empty()) word += '_';
    append_utf8(word, static_cast<char32_t>(u_tolower(code)));
  }
  end_word();
}

// Calls `use` with each group of a word that may have a weight.
template <class Use>
void for_each_group(std::string_view word, Use use) {
  std::vector<size_t> starts;
  for (auto at = code_points(word).begin(); at != code_points(word).end(); ++at)
    starts.push_back(at.offset());
  const size_t characters = starts.size();
  starts.push_back(word.size());
  const auto group = [&](size_t first, size_t count) {
    return word.substr(starts[first], starts[first + count] - starts[first]);
  };
  for (size_t count = 1; count <= kLongestGroup; ++count)
    for (size_t first = 0; first + count <= characters; ++first) use(group(first, count));
  if (characters > kLongestGroup && characters <= kLongestWord) use(word);
}

// A probability for each language of a script that has several.
std::vector<Detected> by_profile(const Letters& letters, UScriptCode script) {
  const auto& languages = table().languages;
  std::vector<double> scores(languages.size());
  for (size_t i = 0; i < languages.size(); ++i) scores[i] = languages[i].bias;
  for (const std::string& word : letters.words)
    for_each_group(word, [&](std::string_view group) {
      const auto found = table().weights.find(group);
      if (found == table().weights.end()) return;
      for (const Weight& weight : found->second) scores[weight.language] += weight.value;
    });
  std::vector<Detected> found;
  double top = -INFINITY, total = 0;
  for (size_t i = 0; i < languages.size(); ++i)
    if (languages[i].script == script) top = std::max(top, scores[i]);
  for (size_t i = 0; i < languages.size(); ++i)
    if (languages[i].script == script) {
      found.push_back({languages[i].code, std::exp(scores[i] - top)});
      total += found.back().confidence;
    }
  for (Detected& d : found) d.confidence /= total;
  return found;
}

// Text in Chinese characters alone may be a Japanese word where it is short.
std::vector<Detected> by_characters(const Letters& letters, size_t characters) {
  std::vector<Detected> found = by_profile(letters, USCRIPT_HAN);
  const double japanese =
      kJapaneseOdds * std::pow(kJapaneseDecay, static_cast<double>(characters) - 1);
  for (Detected& d : found) d.confidence *= 1 - japanese;
  found.push_back({"ja", japanese});
  return found;
}

std::vector<Detected> languages_of(const Letters& letters, UScriptCode script, size_t count) {
  if (script == USCRIPT_JAPANESE) return {{"ja", 1.0}};
  if (script == USCRIPT_HAN) return by_characters(letters, count / 3);
  for (const ScriptLanguage& one : kOneLanguage)
    if (one.script == script) return {{one.language, 1.0}};
  return count < kFewestLetters ? std::vector<Detected>() : by_profile(letters, script);
}

}  // namespace

std::vector<Detected> detect_language(std::string_view text) {
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
  std::vector<Detected> found = languages_of(letters, script, count);
  for (Detected& d : found) d.confidence = std::round(1000 * share * d.confidence) / 10;
  std::ranges::stable_sort(found, std::greater(), &Detected::confidence);
  return found;
}

Detected sure_language(const std::vector<Detected>& found) {
  if (found.empty() || found.front().confidence < kGuess) return {kUndetermined, 0};
  return found.front();
}

std::vector<std::string> detected_languages() {
  std::vector<std::string> codes = {"ja"};
  for (const ScriptLanguage& one : kOneLanguage) codes.emplace_back(one.language);
  for (const ProfiledLanguage& language : table().languages) codes.push_back(language.code);
  std::ranges::sort(codes);
  return codes;
}

}  // namespace fovea
