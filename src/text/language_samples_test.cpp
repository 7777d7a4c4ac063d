#include <gtest/gtest.h>

#include <map>

#include "text/language.h"
#include "text/language_detector.h"

namespace fovea {
namespace {

// Everyday sentences, written for this test.
const std::map<std::string, std::vector<const char*>> kSamples = {
    {"en",
     {"Where did you put my keys?", "It has been raining since this morning.",
      "She reads the newspaper every day.", "We should leave before it gets dark.",
      "I don't like coffee.", "How much does this cost?", "My brother lives in the city.",
      "They were waiting for the bus.", "Please close the window.", "That was a good idea."}},
    {"de",
     {"Wo hast du meine Schlüssel hingelegt?", "Es regnet schon seit heute Morgen.",
      "Sie liest jeden Tag die Zeitung.", "Wir sollten gehen, bevor es dunkel wird.",
      "Ich mag keinen Kaffee.", "Wie viel kostet das?", "Mein Bruder wohnt in der Stadt.",
      "Sie haben auf den Bus gewartet.", "Mach bitte das Fenster zu.", "Das war eine gute Idee."}},
    {"fr",
     {"Où as-tu mis mes clés ?", "Il pleut depuis ce matin.", "Elle lit le journal tous les jours.",
      "Nous devrions partir avant la nuit.", "Je n'aime pas le café.", "Combien ça coûte ?",
      "Mon frère habite en ville.", "Ils attendaient le bus.", "Ferme la fenêtre, s'il te plaît.",
      "C'était une bonne idée."}},
    {"es",
     {"¿Dónde has puesto mis llaves?", "Está lloviendo desde esta mañana.",
      "Ella lee el periódico todos los días.", "Deberíamos irnos antes de que oscurezca.",
      "No me gusta el café.", "¿Cuánto cuesta esto?", "Mi hermano vive en la ciudad.",
      "Estaban esperando el autobús.", "Cierra la ventana, por favor.", "Fue una buena idea."}},
    {"it",
     {"Dove hai messo le mie chiavi?", "Piove da questa mattina.",
      "Lei legge il giornale ogni giorno.", "Dovremmo andare via prima che faccia buio.",
      "Non mi piace il caffè.", "Quanto costa questo?", "Mio fratello vive in città.",
      "Stavano aspettando l'autobus.", "Chiudi la finestra, per favore.",
      "È stata una buona idea."}},
    {"nl",
     {"Waar heb je mijn sleutels gelegd?", "Het regent al sinds vanochtend.",
      "Zij leest elke dag de krant.", "We moeten weg voordat het donker wordt.",
      "Ik houd niet van koffie.", "Hoeveel kost dit?", "Mijn broer woont in de stad.",
      "Ze stonden op de bus te wachten.", "Doe het raam dicht, alsjeblieft.",
      "Dat was een goed idee."}},
    {"pt",
     {"Onde você colocou as minhas chaves?", "Está chovendo desde hoje de manhã.",
      "Ela lê o jornal todos os dias.", "Devíamos ir embora antes de escurecer.",
      "Eu não gosto de café.", "Quanto custa isto?", "O meu irmão mora na cidade.",
      "Eles estavam esperando o ônibus.", "Feche a janela, por favor.", "Foi uma boa ideia."}},
    {"sv",
     {"Var har du lagt mina nycklar?", "Det har regnat sedan i morse.",
      "Hon läser tidningen varje dag.", "Vi borde gå innan det blir mörkt.",
      "Jag tycker inte om kaffe.", "Hur mycket kostar det här?", "Min bror bor i staden.",
      "De väntade på bussen.", "Stäng fönstret, är du snäll.", "Det var en bra idé."}},
    {"pl",
     {"Gdzie położyłeś moje klucze?", "Pada deszcz od samego rana.", "Ona codziennie czyta gazetę.",
      "Powinniśmy wyjść, zanim zrobi się ciemno.", "Nie lubię kawy.", "Ile to kosztuje?",
      "Mój brat mieszka w mieście.", "Czekali na autobus.", "Zamknij okno, proszę.",
      "To był dobry pomysł."}},
    {"cs",
     {"Kam jsi dal moje klíče?", "Prší už od rána.", "Každý den čte noviny.",
      "Měli bychom odejít, než se setmí.", "Nemám rád kávu.", "Kolik to stojí?",
      "Můj bratr bydlí ve městě.", "Čekali na autobus.", "Zavři prosím okno.",
      "To byl dobrý nápad."}},
    {"fi",
     {"Mihin sinä laitoit avaimeni?", "On satanut aamusta asti.", "Hän lukee lehteä joka päivä.",
      "Meidän pitäisi lähteä ennen pimeää.", "En pidä kahvista.", "Paljonko tämä maksaa?",
      "Veljeni asuu kaupungissa.", "He odottivat bussia.", "Sulje ikkuna, ole hyvä.",
      "Se oli hyvä ajatus."}},
    {"tr",
     {"Anahtarlarımı nereye koydun?", "Sabahtan beri yağmur yağıyor.", "O her gün gazete okuyor.",
      "Hava kararmadan gitmeliyiz.", "Kahveyi sevmiyorum.", "Bu ne kadar?",
      "Kardeşim şehirde yaşıyor.", "Otobüsü bekliyorlardı.", "Lütfen pencereyi kapat.",
      "Bu iyi bir fikirdi."}},
    {"ru",
     {"Куда ты положил мои ключи?", "С самого утра идёт дождь.", "Она читает газету каждый день.",
      "Нам надо уйти, пока не стемнело.", "Я не люблю кофе.", "Сколько это стоит?",
      "Мой брат живёт в городе.", "Они ждали автобус.", "Закрой окно, пожалуйста.",
      "Это была хорошая мысль."}},
    {"uk",
     {"Куди ти поклав мої ключі?", "Від самого ранку йде дощ.", "Вона щодня читає газету.",
      "Нам треба піти, поки не стемніло.", "Я не люблю каву.", "Скільки це коштує?",
      "Мій брат живе в місті.", "Вони чекали на автобус.", "Зачини вікно, будь ласка.",
      "Це була гарна думка."}},
    {"zh-Hans",
     {"你把我的钥匙放在哪里了？", "从早上起一直在下雨。", "她每天看报纸。",
      "我们应该在天黑之前离开。", "我不喜欢咖啡。", "这个多少钱？", "我哥哥住在城里。",
      "他们在等公共汽车。", "请把窗户关上。", "我是一个学生。"}},
    {"zh-Hant",
     {"你把我的鑰匙放在哪裡了？", "從早上起一直在下雨。", "她每天看報紙。",
      "我們應該在天黑之前離開。", "我不喜歡喝咖啡。", "這個多少錢？", "我哥哥住在這個城市裡。",
      "他們在等公車。", "請把窗戶關上。", "那是一個好主意，對嗎？"}},
    {"ja",
     {"私の鍵をどこに置きましたか。", "今朝からずっと雨が降っています。",
      "彼女は毎日新聞を読みます。", "暗くなる前に帰りましょう。", "コーヒーは好きではない。",
      "これはいくらですか。", "兄は町に住んでいます。", "彼らはバスを待っていた。",
      "窓を閉めてください。", "いい考えだった。"}},
    {"ko",
     {"내 열쇠를 어디에 두었어?", "아침부터 비가 오고 있어요.", "그녀는 매일 신문을 읽는다.",
      "어두워지기 전에 떠나야 해요.", "나는 커피를 좋아하지 않는다.", "이것은 얼마예요?",
      "우리 형은 도시에 살아요.", "그들은 버스를 기다리고 있었다.", "창문을 닫아 주세요.",
      "좋은 생각이었어요."}},
    {"ar",
     {"أين وضعت مفاتيحي؟", "إنها تمطر منذ هذا الصباح.", "هي تقرأ الجريدة كل يوم.",
      "يجب أن نذهب قبل أن يحل الظلام.", "أنا لا أحب القهوة.", "كم ثمن هذا؟", "أخي يعيش في المدينة.",
      "كانوا ينتظرون الحافلة.", "أغلق النافذة من فضلك.", "كانت فكرة جيدة."}},
    {"el",
     {"Πού έβαλες τα κλειδιά μου;", "Βρέχει από το πρωί.", "Διαβάζει εφημερίδα κάθε μέρα.",
      "Πρέπει να φύγουμε πριν σκοτεινιάσει.", "Δεν μου αρέσει ο καφές.", "Πόσο κάνει αυτό;",
      "Ο αδελφός μου μένει στην πόλη.", "Περίμεναν το λεωφορείο.", "Κλείσε το παράθυρο, παρακαλώ.",
      "Ήταν καλή ιδέα."}},
};

TEST(DetectorSamples, AreDetected) {
  for (const auto& [language, sentences] : kSamples) {
    std::string missed;
    size_t right = 0;
    for (const char* sentence : sentences) {
      const DetectedLanguage found = sure_language(detect_language(sentence));
      if (found.language == language)
        ++right;
      else
        missed += "\n  " + std::string(sentence) + " " + found.language;
    }
    EXPECT_GE(right + 2, sentences.size()) << language << missed;
  }
}

TEST(DetectorSamples, OfOtherLanguagesAreNotEnglishGermanOrFrench) {
  for (const auto& [language, sentences] : kSamples) {
    if (language == "en" || language == "de" || language == "fr") continue;
    for (const char* sentence : sentences) {
      const std::string found = sure_language(detect_language(sentence)).language;
      EXPECT_TRUE(found != "en" && found != "de" && found != "fr") << sentence << " " << found;
    }
  }
}

// Requests are rejected because of a language that is detected with certainty.
TEST(DetectorSamples, AreNeverCertainlyAnotherLanguage) {
  for (const auto& [language, sentences] : kSamples)
    for (const char* sentence : sentences)
      for (const DetectedLanguage& d : detect_language(sentence))
        EXPECT_TRUE(same_language(d.language, language) || d.confidence < kCertain)
            << sentence << " " << d.language << " " << d.confidence;
}

}  // namespace
}  // namespace fovea
