#include "ops/elementwise.h"

#include "support/parity.h"

namespace fovea::parity {
namespace {

const Shapes kMatrices{.largest = {200, 500},
                       .large = {{1024, 512}, {1, 100003}, {100003, 1}, {37, 8003}}};

TEST(Parity, Elementwise) {
  Family family("elementwise");
  const std::pair<const char*, Function> functions[] = {
      {"tanh", Function::tanh}, {"sigmoid", Function::sigmoid},     {"relu", Function::relu},
      {"gelu", Function::gelu}, {"gelu-tanh", Function::gelu_tanh}, {"silu", Function::silu},
      {"exp", Function::exp}};
  for (const auto& [name, f] : functions) {
    family.check(name, Bar::elementwise, kMatrices, [f = f](Trial& t, const Sizes& n) {
      t.expect("y", apply(f, t.input({n[0], n[1]})));
    });
    family.check(std::string(name) + ", dropped", Bar::elementwise, kMatrices,
                 [f = f](Trial& t, const Sizes& n) {
                   t.expect("y", apply(f, t.input({n[0], n[1]}), t.dropout(0.3)));
                 });
    family.check(std::string(name) + ", gated", Bar::elementwise, kMatrices,
                 [f = f](Trial& t, const Sizes& n) {
                   const Tensor x = t.input({n[0], n[1]}), z = t.input({n[0], n[1]});
                   t.expect("y", gated(f, x, z, t.dropout(0.3)));
                 });
  }
  family.check("scaled", Bar::elementwise, kMatrices, [](Trial& t, const Sizes& n) {
    t.expect("y", t.input({n[0], n[1]}) * -0.7);
  });
  family.check("sum", Bar::elementwise, kMatrices, [](Trial& t, const Sizes& n) {
    t.expect("y", sum(t.input({n[0], n[1]}, 1, 0.5)));
  });
  family.check("residual", Bar::elementwise, kMatrices, [](Trial& t, const Sizes& n) {
    const Tensor x = t.input({n[0], n[1]}), f = t.input({n[0], n[1]});
    t.expect("y", residual(x, f, t.drops() ? t.dropout(0.1) : Dropout{}));
  });
  family.check("dropped", Bar::elementwise, kMatrices, [](Trial& t, const Sizes& n) {
    t.expect("y", dropped(t.input({n[0], n[1]}), t.dropout(0.6)));
  });
}

// Pairs of shapes that broadcast together, made from three sizes.
struct Pair {
  const char* name;
  Shape (*a)(const Sizes& n);
  Shape (*b)(const Sizes& n);
};
const Pair kPairs[] = {
    {"alike",
     [](const Sizes& n) -> Shape {
       return {n[0], n[1], n[2]};
     },
     [](const Sizes& n) -> Shape {
       return {n[0], n[1], n[2]};
     }},
    {"a row",
     [](const Sizes& n) -> Shape {
       return {n[0] * n[1], n[2]};
     },
     [](const Sizes& n) -> Shape { return {n[2]}; }},
    {"a column",
     [](const Sizes& n) -> Shape {
       return {n[0], n[1], n[2]};
     },
     [](const Sizes& n) -> Shape {
       return {n[0], n[1], 1};
     }},
    {"a number",
     [](const Sizes& n) -> Shape {
       return {n[1], n[2]};
     },
     [](const Sizes&) -> Shape { return {1}; }},
    {"rows by columns",
     [](const Sizes& n) -> Shape {
       return {n[0], 1, n[2]};
     },
     [](const Sizes& n) -> Shape {
       return {n[1], 1};
     }},
    {"one each",
     [](const Sizes& n) -> Shape {
       return {1, n[1], n[2]};
     },
     [](const Sizes& n) -> Shape {
       return {n[0], 1, n[2]};
     }},
    {"the first repeated", [](const Sizes& n) -> Shape { return {n[2]}; },
     [](const Sizes& n) -> Shape {
       return {n[0], n[1], n[2]};
     }},
    {"the middle repeated",
     [](const Sizes& n) -> Shape {
       return {n[0], n[1], n[2]};
     },
     [](const Sizes& n) -> Shape {
       return {n[0], 1, n[2]};
     }},
};

TEST(Parity, Broadcast) {
  Family family("broadcast");
  const Shapes shapes{.largest = {9, 40, 130}, .large = {{4, 64, 300}, {1, 3000, 7}}};
  for (const Pair& pair : kPairs) {
    family.check(std::string("sum with ") + pair.name, Bar::elementwise, shapes,
                 [&](Trial& t, const Sizes& n) {
                   const Tensor a = t.input(pair.a(n), 1, 0.5), b = t.input(pair.b(n), 1, 0.5);
                   t.expect("y", a + b);
                 });
    family.check(std::string("product with ") + pair.name, Bar::elementwise, shapes,
                 [&](Trial& t, const Sizes& n) {
                   const Tensor a = t.input(pair.a(n), 1, 0.5), b = t.input(pair.b(n), 1, 0.5);
                   t.expect("y", a * b);
                 });
  }
  family.check("a square", Bar::elementwise, shapes, [](Trial& t, const Sizes& n) {
    const Tensor x = t.input({n[1], n[2]});
    t.expect("y", x * x);  // two contributions to one gradient
  });
}

}  // namespace
}  // namespace fovea::parity
