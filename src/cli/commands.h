#pragma once

#include <functional>
#include <string>
#include <vector>

namespace fovea {

class Command;

// Runs the command that the words name, and returns the exit code of the program. Prints errors to
// standard error.
int run_program(const std::vector<std::string>& words);

// Calls the action and returns its result. If the action throws, prints the error and returns its
// exit code.
int exit_code_of(const std::function<int()>& action);

// Adds `fovea align`: aligns the words of sentence pairs by the attention of a model.
void add_align(Command& program);

// Adds `fovea average`: writes a model whose weights are the mean of several models.
void add_average(Command& program);

// Adds `fovea bench train` and `fovea bench decode`: measure speed.
void add_bench(Command& program);

// Adds `fovea classify`: labels texts or answers questions, and shows the attention weights.
void add_classify(Command& program);

// Adds `fovea compare`: trains several models on the same text and reports their differences.
void add_compare(Command& program);

// Adds `fovea doctor`: checks whether the program can run on this machine.
void add_doctor(Command& program);

// Adds `fovea embed`: learns word vectors from text.
void add_embed(Command& program);

// Adds `fovea evaluate`: prints scores of hypotheses against references.
void add_evaluate(Command& program);

// Adds `fovea import`: converts a model of another program to a model directory.
void add_import(Command& program);

// Adds `fovea inspect`: prints and checks the contents of a model directory.
void add_inspect(Command& program);

// Adds `fovea neighbours`: finds the words with the vectors most similar to those of given words.
void add_neighbours(Command& program);

// Adds `fovea score`: computes the probability of given translations under a model.
void add_score(Command& program);

// Adds `fovea serve`: serves translations over HTTP.
void add_serve(Command& program);

// Adds `fovea show`: draws the attention of a translated sentence.
void add_show(Command& program);

// Adds `fovea train`: trains a model from a recipe and writes a model directory.
void add_train(Command& program);

// Adds `fovea translate`: translates texts, files or a pipe.
void add_translate(Command& program);

// Adds `fovea vocab`: makes a vocabulary from text files, or shows how a vocabulary splits a text.
void add_vocab(Command& program);

}  // namespace fovea
