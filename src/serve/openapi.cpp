#include <algorithm>
#include <initializer_list>

#include "base/ascii.h"
#include "serve/service.h"

namespace fovea {
namespace {

constexpr const char* kTitle = R"json(
{
"openapi": "3.0.3",
"info": {"title": "Fovea", "version": ")json";

constexpr const char* kTexts = R"json(",
  "description": "Machine translation as LibreTranslate and, for texts, DeepL offer it."},
"paths": {
"/translate": {"post": {"summary": "Translate a text or a list of texts",
  "requestBody": {"$ref": "#/components/requestBodies/Question"},
  "responses": {
    "200": {"description": "The translation", "content": {"application/json": {"schema": {
    "$ref": "#/components/schemas/Answer"}}}},
    "400": {"$ref": "#/components/responses/Error"}, "403": {
    "$ref": "#/components/responses/Error"},
    "429": {"$ref": "#/components/responses/Error"}, "500": {
    "$ref": "#/components/responses/Error"},
    "504": {"$ref": "#/components/responses/Error"}}}},
"/v1/translate/stream": {"post": {
    "summary": "Words and sentences as they are translated; at the end what /translate answers",
  "requestBody": {"$ref": "#/components/requestBodies/Question"},
  "responses": {"200": {"description": "Server-sent events, a line of JSON each",
    "content": {"text/event-stream": {"schema": {"type": "object", "properties": {
    "words": {"type": "object", "required": ["text", "sentence", "before", "added"],
      "description": "more words of a sentence, which will not change"},
    "sentence": {"type": "object", "required": ["text", "sentence", "before", "source",
      "translatedText", "score"]},
    "done": {"$ref": "#/components/schemas/Answer"},
    "error": {"type": "object", "required": ["error"]}}}}}},
    "400": {"$ref": "#/components/responses/Error"}, "429": {
    "$ref": "#/components/responses/Error"}}}},
"/detect": {"post": {"summary": "The language of a text",
  "requestBody": {"$ref": "#/components/requestBodies/Text"},
  "responses": {"200": {"description":
    "At most three, the most probable first; und alone if unsure", "content": {
    "application/json": {"schema": {
    "type": "array", "items": {"$ref": "#/components/schemas/Detected"}}}}},
    "400": {"$ref": "#/components/responses/Error"}, "429": {
    "$ref": "#/components/responses/Error"}}}},
"/languages": {"get": {"summary": "Languages and what they can be translated to",
  "responses": {"200": {"description": "All of them", "content": {"application/json": {
    "schema": {"type": "array", "items": {
    "type": "object", "required": ["code", "name", "targets"], "properties": {"code": {
    "type": "string"}, "name": {"type": "string"},
    "targets": {"type": "array", "items": {"type": "string"}}}}}}}}}}},
)json";

constexpr const char* kRest = R"json(
"/translate_file": {"post": {"summary": "Translate a file: .txt, .html, .htm",
  "requestBody": {"required": true, "content": {"multipart/form-data": {"schema": {
    "type": "object", "required": ["file", "source", "target"],
    "properties": {"file": {"type": "string", "format": "binary"}, "source": {"type": "string"},
    "target": {"type": "string"}, "api_key": {"type": "string"}}}}}},
  "responses": {"200": {"description": "Where it can be fetched, for ten minutes", "content": {
    "application/json": {"schema": {"type": "object",
    "required": ["translatedFileUrl"], "properties": {"translatedFileUrl": {
    "type": "string"}, "warnings": {"type": "array",
    "items": {"$ref": "#/components/schemas/Warning"}}}}}}},
    "400": {"$ref": "#/components/responses/Error"}, "403": {
    "$ref": "#/components/responses/Error"}}}},
"/download_file/{name}": {"get": {"summary": "A translated file",
  "parameters": [{"name": "name", "in": "path", "required": true, "schema": {"type": "string"}}],
  "responses": {"200": {"description": "The file"}, "404": {
    "$ref": "#/components/responses/Error"}}}},
"/frontend/settings": {"get": {"summary": "What a page needs to know", "responses": {"200": {
    "description": "Settings",
  "content": {"application/json": {"schema": {"type": "object", "required": ["charLimit",
    "filesTranslation", "keyRequired", "language"]}}}}}}},
"/suggest": {"post": {"summary": "Not offered",
  "requestBody": {"$ref": "#/components/requestBodies/Text"}, "responses": {"403": {
    "$ref": "#/components/responses/Error"}}}},
"/v2/translate": {"post": {"summary": "As DeepL",
  "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object",
    "required": ["text", "target_lang"],
    "properties": {"text": {"type": "array", "items": {"type": "string"}}, "target_lang": {
    "type": "string"}, "source_lang": {"type": "string"},
    "tag_handling": {"type": "string", "enum": ["xml", "html"]}}}}}},
  "responses": {"200": {"description": "Translations", "content": {"application/json": {
    "schema": {"type": "object", "required": ["translations"],
    "properties": {"translations": {"type": "array", "items": {"type": "object", "required": [
    "detected_source_language", "text"],
    "properties": {"detected_source_language": {"type": "string"}, "text": {"type": "string"},
    "warnings": {"type": "array", "items": {"$ref": "#/components/schemas/Warning"}}}}}}}}}},
    "500": {"$ref": "#/components/responses/Error"},
    "504": {"$ref": "#/components/responses/Error"}}}},
)json";

constexpr const char* kInside = R"json(
"/v1/explain": {"post": {"summary": "One row of attention, step by step with its numbers",
  "requestBody": {"required": true, "content": {"application/json": {"schema": {
    "allOf": [{"$ref": "#/components/schemas/Question"}, {"type": "object", "properties": {
    "sentence": {"type": "integer", "minimum": 0, "maximum": 1048576, "default": 0},
    "kind": {"type": "string", "enum": ["cross", "encoder", "decoder"], "default": "cross"},
    "layer": {"type": "integer", "minimum": 0, "maximum": 1048576, "default": 0},
    "head": {"type": "integer", "minimum": 0, "maximum": 1048576, "default": 0},
    "row": {"type": "integer", "minimum": 0, "maximum": 1048576, "default": 0}}}]}}}},
  "responses": {"200": {"description": "The steps", "content": {"application/json": {"schema": {
    "type": "object", "required": ["kind", "layer", "head", "row", "mechanism", "translation",
    "asking", "pieces", "steps"], "properties": {
    "asking": {"type": "array", "items": {"type": "string"}},
    "pieces": {"type": "array", "items": {"type": "string"}},
    "steps": {"type": "array", "items": {"type": "object", "required": ["step", "name", "formula",
    "of", "values"], "properties": {"step": {"type": "integer"}, "name": {"type": "string"},
    "formula": {"type": "string"}, "of": {"type": "string", "enum": ["query", "words"]},
    "weights": {"type": "boolean"}, "factors": {"type": "array", "items": {"type": "string"}},
    "values": {"type": "array"}}}}}}}}},
    "400": {"$ref": "#/components/responses/Error"}, "429": {
    "$ref": "#/components/responses/Error"}}}},
"/v1/positions": {"get": {"summary": "What is added to the embeddings of the first words",
  "parameters": [{"$ref": "#/components/parameters/source"},
    {"$ref": "#/components/parameters/target"}, {"$ref": "#/components/parameters/model"},
    {"$ref": "#/components/parameters/side"}, {"name": "count", "in": "query", "schema": {
    "type": "integer", "minimum": 1, "maximum": 512, "default": 64}}],
  "responses": {"200": {"description": "rows × size floats, little-endian, as base64", "content": {
    "application/json": {"schema": {"type": "object", "required": ["kind", "rows", "size", "data"],
    "properties": {"kind": {"type": "string"}, "rows": {"type": "integer"},
    "size": {"type": "integer"}, "data": {"type": "string"}}}}}},
    "400": {"$ref": "#/components/responses/Error"}}}},
"/v1/neighbours": {"post": {"summary": "Words whose embeddings are alike, and a map of them",
  "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object",
    "required": ["words", "source", "target"], "properties": {
    "words": {"type": "array", "items": {"type": "string"}, "maxItems": 40},
    "source": {"type": "string"}, "target": {"type": "string"}, "model": {"type": "string"},
    "side": {"type": "string", "enum": ["source", "target"], "default": "source"},
    "count": {"type": "integer", "minimum": 0, "maximum": 50, "default": 10}}}}}},
  "responses": {"200": {"description": "Words and places", "content": {"application/json": {
    "schema": {"type": "object", "required": ["words", "unknown", "map"], "properties": {
    "words": {"type": "array", "items": {"type": "object", "required": ["word", "neighbours"]}},
    "unknown": {"type": "array", "items": {"type": "string"}},
    "map": {"type": "array", "items": {"type": "object", "required": ["word", "x", "y", "group",
    "centre"]}}}}}}},
    "400": {"$ref": "#/components/responses/Error"}, "429": {
    "$ref": "#/components/responses/Error"}}}},
)json";

constexpr const char* kTraining = R"json(
"/v1/training": {"get": {"summary": "What was measured while a model was trained",
  "parameters": [{"$ref": "#/components/parameters/source"},
    {"$ref": "#/components/parameters/target"}, {"$ref": "#/components/parameters/model"}],
  "responses": {"200": {"description": "curves: by kind and name a list of [update, value]",
    "content": {"application/json": {"schema": {"type": "object", "required": ["running",
    "updates", "curves"], "properties": {"running": {"type": "boolean"},
    "updates": {"type": "array", "items": {"type": "integer"}},
    "curves": {"type": "object"}}}}}},
    "400": {"$ref": "#/components/responses/Error"},
    "404": {"$ref": "#/components/responses/Error"}}}},
"/v1/training/attention": {"post": {
    "summary": "The attention of a pair as it was after one of the updates that were kept",
  "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object",
    "required": ["q", "translation", "update", "source", "target"], "properties": {
    "q": {"type": "string"}, "translation": {"type": "string"},
    "update": {"type": "integer", "minimum": 0, "maximum": 1000000000000000},
    "source": {"type": "string"}, "target": {"type": "string"}, "model": {"type": "string"}}}}}},
  "responses": {"200": {"description": "As in the attention of /translate", "content": {
    "application/json": {"schema": {"$ref": "#/components/schemas/Attention"}}}},
    "400": {"$ref": "#/components/responses/Error"},
    "404": {"$ref": "#/components/responses/Error"}}}},
)json";

constexpr const char* kMore = R"json(
"/v2/languages": {"get": {"summary": "As DeepL", "parameters": [{"name": "type", "in": "query",
    "schema": {"type": "string", "enum": ["source", "target"]}}],
  "responses": {"200": {"description": "Languages", "content": {"application/json": {"schema": {
    "type": "array", "items": {"type": "object", "required": ["language", "name"],
    "properties": {"language": {"type": "string"}, "name": {"type": "string"}}}}}}}}}},
"/v1/models": {"get": {"summary": "The models that can be asked", "responses": {"200": {
    "description": "In the order of the command line", "content": {"application/json": {
    "schema": {"type": "array", "items": {"type": "object",
    "required": ["name", "source", "target", "type", "attention", "training"],
    "properties": {"name": {"type": "string"}, "source": {"type": "string"},
    "target": {"type": "string"}, "type": {"type": "string"},
    "attention": {"type": "string"}, "score": {"type": "string"},
    "gallery": {"type": "boolean"}, "training": {"type": "boolean"}}}}}}}}}},
"/health": {"get": {"summary": "LibreTranslate's health", "responses": {"200": {
    "$ref": "#/components/responses/Status"}}}},
"/livez": {"get": {"summary": "The process lives", "responses": {"200": {
    "$ref": "#/components/responses/Status"}}}},
"/readyz": {"get": {"summary": "It can take requests: 503 where it ends, or too much is waiting",
    "responses": {"200": {"$ref": "#/components/responses/Status"},
    "503": {"$ref": "#/components/responses/Status"}}}},
"/openapi.json": {"get": {"summary": "This description", "responses": {"200": {
    "description": "OpenAPI 3.0.3"}}}},
"/spec": {"get": {"summary": "This description", "responses": {"200": {
    "description": "OpenAPI 3.0.3"}}}},
"/metrics": {"get": {"summary": "Prometheus", "responses": {"200": {"description": "Figures",
    "content": {"text/plain": {"schema": {"type": "string"}}}}}}}
},
"components": {
"parameters": {
"source": {"name": "source", "in": "query", "required": true, "schema": {"type": "string"}},
"target": {"name": "target", "in": "query", "required": true, "schema": {"type": "string"}},
"model": {"name": "model", "in": "query", "schema": {"type": "string"}},
"side": {"name": "side", "in": "query", "schema": {"type": "string",
    "enum": ["source", "target"], "default": "source"}}},
"responses": {"Error": {"description": "Error message", "content": {"application/json": {
    "schema": {"type": "object", "required": ["error"],
  "properties": {"error": {"type": "string"}}}}}},
"Message": {"description": "Error message in the form of DeepL", "content": {"application/json": {
    "schema": {"type": "object", "required": ["message"],
  "properties": {"message": {"type": "string"}}}}}},
"Status": {"description": "Status", "content": {"application/json": {
    "schema": {"type": "object", "required": ["status"],
  "properties": {"status": {"type": "string"}}}}}}},
"securitySchemes": {
"bearer": {"type": "http", "scheme": "bearer", "description":
  "the key as Authorization: Bearer KEY, or DeepL-Auth-Key KEY"},
"field": {"type": "apiKey", "in": "query", "name": "api_key", "description":
  "the key as a field: of the body, in JSON or a form, or of the query of what is not JSON"}},
"requestBodies": {
"Question": {"required": true, "content": {
  "application/json": {"schema": {"$ref": "#/components/schemas/Question"}},
  "application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/Question"}},
  "multipart/form-data": {"schema": {"$ref": "#/components/schemas/Question"}}}},
"Text": {"required": true, "content": {
  "application/json": {"schema": {"$ref": "#/components/schemas/Text"}},
  "application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/Text"}},
  "multipart/form-data": {"schema": {"$ref": "#/components/schemas/Text"}}}}},
"schemas": {
"Text": {"type": "object", "required": ["q"], "properties": {"q": {"type": "string"},
  "api_key": {"type": "string"}}},
"Question": {"type": "object", "required": ["q", "source", "target"], "properties": {
  "q": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
  "source": {"type": "string", "description": "a code, or auto"}, "target": {"type": "string"},
  "format": {"type": "string", "enum": ["text", "html"], "default": "text"},
  "alternatives": {"type": "integer", "minimum": 0, "maximum": 15, "default": 0},
  "api_key": {"type": "string"},
  "beam_size": {"type": "integer", "minimum": 1, "maximum": 16},
  "length_penalty": {"type": "number", "minimum": -10, "maximum": 10},
  "n_best": {"type": "integer", "minimum": 1, "maximum": 16},
  "attention": {"type": "boolean", "default": false},
  "model": {"type": "string",
    "description": "the name of a model's folder, where several serve a pair"},
  "prefix": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    "description": "what the translation of one sentence begins with: text, or pieces"},
  "mask_words": {"type": "array", "items": {"type": "integer", "minimum": 0},
    "description": "words of one sentence, from 0, that no attention looks at"},
  "mask_heads": {"type": "array", "maxItems": 1024, "items": {"type": "object",
    "required": ["kind", "layer", "head"], "properties": {
    "kind": {"type": "string", "enum": ["encoder", "decoder", "cross"]},
    "layer": {"type": "integer", "minimum": 0}, "head": {"type": "integer", "minimum": 0}}},
    "description": "heads to mute"},
  "force_attention": {"type": "array", "maxItems": 64, "items": {"type": "object",
    "required": ["step"], "properties": {"step": {"type": "integer", "minimum": 0},
    "word": {"type": "integer", "minimum": 0}, "weights": {"type": "array", "items": {
    "type": "number", "minimum": 0, "maximum": 1}}, "layer": {"type": "integer", "minimum": 0},
    "head": {"type": "integer", "minimum": 0}}},
    "description": "what a step looks at: one word, or a weight for each"}}},
"Answer": {"type": "object", "required": ["translatedText"], "properties": {
  "translatedText": {"oneOf": [{"type": "string"}, {"type": "array", "items": {
    "type": "string"}}]},
  "detectedLanguage": {"oneOf": [{"$ref": "#/components/schemas/Detected"}, {"type": "array",
    "items": {"$ref": "#/components/schemas/Detected"}}]},
  "alternatives": {"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "array",
    "items": {"type": "string"}}]}},
  "n_best": {"type": "array", "items": {"oneOf": [{"$ref": "#/components/schemas/Scored"},
    {"type": "array", "items": {"$ref": "#/components/schemas/Scored"}}]}},
  "attention": {"type": "array", "description": "one of each sentence; lists for a list of texts",
    "items": {"oneOf": [{"$ref": "#/components/schemas/Attention"},
    {"type": "array", "items": {"$ref": "#/components/schemas/Attention"}}]}},
  "warnings": {"type": "array", "items": {"$ref": "#/components/schemas/Warning"}}}},
"Warning": {"type": "object", "required": ["code", "message"], "properties": {
  "code": {"type": "string", "enum": ["unknown_characters", "unreadable", "other_language",
    "not_copied"]},
  "message": {"type": "string"},
  "text": {"type": "integer", "minimum": 0, "description": "of a list of texts, from 0"},
  "unknown": {"type": "integer", "minimum": 1}, "characters": {"type": "integer", "minimum": 1},
  "words": {"type": "integer", "minimum": 1,
    "description": "instead of characters, where the vocabulary has whole words"},
  "examples": {"type": "array", "maxItems": 5, "items": {"type": "string"}},
  "not_copied": {"type": "array", "minItems": 1, "items": {"type": "string"},
    "description": "characters or words of the text that the translation lacks"},
  "language": {"type": "string", "description": "that the text is in"},
  "confidence": {"type": "number", "minimum": 0, "maximum": 100}}},
"Scored": {"type": "object", "required": ["text", "log_prob"], "properties": {
  "text": {"type": "string"}, "log_prob": {"type": "number", "maximum": 0}}},
"Sentence": {"type": "object", "required": ["text", "tokens", "words", "word_of"], "properties": {
  "text": {"type": "string"}, "tokens": {"type": "array", "items": {"type": "string"}},
  "words": {"type": "array", "items": {"type": "string"}},
  "word_of": {"type": "array", "items": {"type": "integer"}}}},
"Attention": {"type": "object", "required": ["model", "source", "target", "attention"],
  "properties": {"source": {"$ref": "#/components/schemas/Sentence"},
  "target": {"$ref": "#/components/schemas/Sentence"},
  "model": {"type": "object", "required": ["type", "layers", "heads", "kinds"]},
  "attention": {"type": "array", "items": {"type": "object",
    "required": ["kind", "mechanism", "layer", "head", "rows", "cols", "data", "sums"],
    "properties": {
    "kind": {"type": "string", "enum": ["encoder", "decoder", "cross"]},
    "mechanism": {"type": "string"}, "layer": {"type": "integer"}, "head": {"type": "integer"},
    "rows": {"type": "integer"}, "cols": {"type": "integer"},
    "data": {"type": "string", "description": "base64 of rows × cols bytes, weight × 255"},
    "sums": {"type": "array", "items": {"type": "number"},
      "description": "sum of each row before rounding"}}}},
  "extra": {"type": "object", "description": "what a mechanism has of its own"},
  "steps": {"type": "array", "items": {"type": "object", "required": ["token", "logprob", "topk"]}},
  "beam": {"type": "array", "items": {"type": "object",
    "required": ["id", "parent", "step", "token", "score", "finished"]}}}},
"Detected": {"type": "object", "required": ["confidence", "language"], "properties": {
  "confidence": {"type": "number", "minimum": 0, "maximum": 100}, "language": {"type": "string"}}}
}}})json";

constexpr const char* kError = "#/components/responses/Error";
constexpr const char* kMessage = "#/components/responses/Message";

// Endpoints that a model answers, in its time; a stream has events for what goes wrong.
constexpr const char* kOfModels[] = {"/translate",   "/translate_file",       "/v2/translate",
                                     "/v1/explain",  "/v1/positions",         "/v1/neighbours",
                                     "/v1/training", "/v1/training/attention"};

}  // namespace

// What stands above, and what every endpoint of a kind can answer besides.
std::string Service::description() {
  static const std::string text = [] {
    Json api = Json::parse(std::string(kTitle) + FOVEA_VERSION + kTexts + kRest + kInside +
                           kTraining + kMore);
    for (const Route& route : routes()) {
      const bool below = route.path.size() > 1 && route.path.ends_with('/');
      const std::string path = std::string(route.path) + (below ? "{name}" : "");
      if (!api["paths"].contains(path)) continue;  // the page
      Json& operation = api["paths"][path][lower_ascii(route.method)];
      const auto add = [&](const char* response, std::initializer_list<const char*> statuses) {
        for (const char* status : statuses)
          if (!operation["responses"].contains(status))
            operation["responses"][status] = {{"$ref", response}};
      };
      if (route.access != Route::Access::open) {
        add(path.starts_with("/v2/") ? kMessage : kError, {"400", "403", "429"});
        operation["security"] = Json::parse(R"([{"bearer": []}, {"field": []}, {}])");
      }
      if (operation.contains("requestBody")) add(kError, {"413", "415", "503"});
      if (std::ranges::count(kOfModels, path) > 0) add(kError, {"500", "504"});
    }
    return api.dump();
  }();
  return text;
}

}  // namespace fovea
