// Times the shapes of op_bench in oneDNN alone. scripts/onednn_versions builds this file against each version that it compares
// and runs the programs in turn. It links oneDNN and nothing of tessera.
// It reads lines:
//   product TYPE M N K                                   y[m, n] = a[m, k] b[k, n]
//   conv TYPE PASS N SIZE IN OUT KERNEL STRIDE GROUPS    square images and windows, padding KERNEL / 2
//   run                                                  times every way of the last case
// TYPE is f32 or bf16, PASS forward, backward_input or backward_weight. The program first prints the version that it was built
// for and the one that it runs. It answers a case with one field per way: its name, '=' and the magnitude of its result. It
// answers `run` with one time per way, in ms. Fields are separated by tabs. All ways read and write tensors in tessera's layouts
// (NHWC, weights [out, kernel, kernel, in]). If a way computes in other layouts, the reorders are timed with it. The gradient of
// a weight is f32 in both types.
#include <dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Type = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::stream& stream() {
  static dnnl::stream calls(engine());
  return calls;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// Since version 3 a primitive is described in one step.
template <typename Primitive, typename... Parts>
typename Primitive::primitive_desc describe(const Parts&... parts) {
#if DNNL_VERSION_MAJOR < 3
  return {typename Primitive::desc(parts...), attributes(), engine()};
#else
  return {engine(), parts..., attributes()};
#endif
}

template <typename Primitive, typename Hint, typename... Parts>
typename Primitive::primitive_desc describe_gradient(const Hint& hint, const Parts&... parts) {
#if DNNL_VERSION_MAJOR < 3
  return {typename Primitive::desc(parts...), attributes(), engine(), hint};
#else
  return {engine(), parts..., hint, attributes()};
#endif
}

// An operand in tessera's layout. The primitive is described with the same layout (ours) or with one that oneDNN chooses (any).
struct Operand {
  Dims sizes, strides;
  Type type;

  Desc ours() const { return {sizes, type, strides}; }
  Desc any() const { return {sizes, type, Tag::any}; }
};

Operand nhwc(const Dims& s, Type type) { return {{s[0], s[3], s[1], s[2]}, {s[1] * s[2] * s[3], 1, s[2] * s[3], s[3]}, type}; }

Operand matrix(std::int64_t rows, std::int64_t columns, Type type) { return {{rows, columns}, {columns, 1}, type}; }

std::int64_t count(const Operand& operand) {
  return std::accumulate(operand.sizes.begin(), operand.sizes.end(), std::int64_t{1}, std::multiplies<>());
}

Desc line(const Operand& operand, Type type) { return {Dims{count(operand)}, type, Dims{1}}; }

// Copies between a line of f32 and the memory of an operand, element by element in memory order.
void convert(const Operand& from_shape, Type from_type, void* from, Type to_type, void* to) {
  dnnl::memory source(line(from_shape, from_type), engine(), from);
  dnnl::memory target(line(from_shape, to_type), engine(), to);
  dnnl::reorder(source, target).execute(stream(), source, target);
  stream().wait();
}

// Numbers in [-1, 1), the same in every program.
dnnl::memory random_numbers(const Operand& operand, std::uint32_t state) {
  std::vector<float> values(static_cast<std::size_t>(count(operand)));
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / static_cast<float>(1u << 23) - 1.0f;
  }
  dnnl::memory memory(operand.ours(), engine());
  convert(operand, Type::f32, values.data(), operand.type, memory.get_data_handle());
  return memory;
}

// Fills a result with NaN, so that a way that does not write all of it shows.
void spoil(const Operand& operand, const dnnl::memory& memory) {
  std::vector<float> values(static_cast<std::size_t>(count(operand)), std::numeric_limits<float>::quiet_NaN());
  convert(operand, Type::f32, values.data(), operand.type, memory.get_data_handle());
}

double magnitude(const Operand& operand, const dnnl::memory& memory) {
  std::vector<float> values(static_cast<std::size_t>(count(operand)));
  convert(operand, operand.type, memory.get_data_handle(), Type::f32, values.data());
  return std::accumulate(values.begin(), values.end(), 0.0, [](double sum, float value) { return sum + std::abs(value); });
}

// A sequence of calls: reorders in, one primitive, a reorder out.
class Calls {
 public:
  void read(int argument, const dnnl::memory& ours, const Desc& theirs) {
    arguments_[argument] = ours;
    if (ours.get_desc() == theirs) return;
    const dnnl::memory own(theirs, engine());
    arguments_[argument] = own;
    before_.push_back({dnnl::reorder(ours, own), {{DNNL_ARG_FROM, ours}, {DNNL_ARG_TO, own}}});
  }

  void write(int argument, const dnnl::memory& ours, const Desc& theirs) {
    arguments_[argument] = ours;
    if (ours.get_desc() == theirs) return;
    const dnnl::memory own(theirs, engine());
    arguments_[argument] = own;
    after_.push_back({dnnl::reorder(own, ours), {{DNNL_ARG_FROM, own}, {DNNL_ARG_TO, ours}}});
  }

  void primitive(const dnnl::primitive& primitive, const Desc& scratchpad) {
    primitive_ = primitive;
    arguments_[DNNL_ARG_SCRATCHPAD] = dnnl::memory(scratchpad, engine());
  }

  void operator()() {
    for (const Step& step : before_) step.primitive.execute(stream(), step.arguments);
    primitive_.execute(stream(), arguments_);
    for (const Step& step : after_) step.primitive.execute(stream(), step.arguments);
    stream().wait();
  }

 private:
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };

  std::vector<Step> before_, after_;
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// A tensor in our layout, and the layout that a primitive wants for it.
struct Argument {
  int which;
  dnnl::memory ours;
  Desc theirs;
};

// oneDNN's plain loops are some hundred times slower, and nobody would call them. They count as unimplemented.
template <typename Primitive>
Calls calls_of(const typename Primitive::primitive_desc& chosen, const std::vector<Argument>& read, const Argument& written) {
  if (std::string(chosen.impl_info_str()).starts_with("ref")) throw dnnl::error(dnnl_unimplemented, "plain loops");
  Calls calls;
  for (const Argument& argument : read) calls.read(argument.which, argument.ours, argument.theirs);
  calls.write(written.which, written.ours, written.theirs);
  calls.primitive(Primitive(chosen), chosen.scratchpad_desc());
  return calls;
}

struct Way {
  std::string name;
  std::function<void()> run;
};

struct Case {
  std::vector<Way> ways;
  Operand output;
  dnnl::memory result;
};

// Adds a way, unless this version of oneDNN does not have it.
void add(Case& cases, const std::string& name, const std::function<Calls()>& set_up) {
  try {
    cases.ways.push_back({name, set_up()});
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
  }
}

Case product(Type type, std::int64_t m, std::int64_t n, std::int64_t k) {
  const Operand a = matrix(m, k, type), b = matrix(k, n, type), y = matrix(m, n, type);
  const dnnl::memory left = random_numbers(a, 1), right = random_numbers(b, 2), out = random_numbers(y, 3);
  Case made;
  const auto matmul = [&](const Desc& first, const Desc& second) {
    const auto chosen = describe<dnnl::matmul>(first, second, y.ours());
    return calls_of<dnnl::matmul>(chosen,
                                  {{DNNL_ARG_SRC, left, chosen.src_desc()}, {DNNL_ARG_WEIGHTS, right, chosen.weights_desc()}},
                                  {DNNL_ARG_DST, out, chosen.dst_desc()});
  };
  add(made, "matmul", [&] { return matmul(a.ours(), b.ours()); });
  add(made, "matmul, b packed", [&] { return matmul(a.ours(), b.any()); });
  add(made, "matmul, a and b packed", [&] { return matmul(a.any(), b.any()); });
  if (type == Type::f32) {
    const auto data = [](const dnnl::memory& memory) { return static_cast<float*>(memory.get_data_handle()); };
    made.ways.push_back(
        {"sgemm", [=] { dnnl::sgemm('N', 'N', m, n, k, 1.0f, data(left), k, data(right), n, 0.0f, data(out), n); }});
  }
  made.output = y;
  made.result = out;
  return made;
}

struct ConvShape {
  std::int64_t n, size, in, out, kernel, stride, groups;
};

Operand weight_of(const ConvShape& s, Type type) {
  if (s.groups == 1) return nhwc({s.out, s.kernel, s.kernel, s.in}, type);
  const std::int64_t out = s.out / s.groups, in = s.in / s.groups, filter = s.kernel * s.kernel * in;
  return {{s.groups, out, in, s.kernel, s.kernel}, {out * filter, filter, 1, s.kernel * in, in}, type};
}

struct Layouts {
  Desc x, weight, y;
};

// A convolution with its tensors. A way chooses the layouts and the algorithm.
struct Convolution {
  std::string pass;
  Dims stride, padding;
  dnnl::memory x, weight, y;
  Layouts hint;  // of the forward that a gradient refers to

  Calls with(const Layouts& wanted, dnnl::algorithm algorithm) const {
    using Forward = dnnl::convolution_forward;
    using BackwardData = dnnl::convolution_backward_data;
    using BackwardWeights = dnnl::convolution_backward_weights;
    const auto forward = [&](const Layouts& layouts) {
      return describe<Forward>(dnnl::prop_kind::forward_training, algorithm, layouts.x, layouts.weight, layouts.y, stride,
                               padding, padding);
    };
    if (pass == "forward") {
      const auto chosen = forward(wanted);
      return calls_of<Forward>(chosen, {{DNNL_ARG_SRC, x, chosen.src_desc()}, {DNNL_ARG_WEIGHTS, weight, chosen.weights_desc()}},
                               {DNNL_ARG_DST, y, chosen.dst_desc()});
    }
    if (pass == "backward_input") {
      const auto chosen =
          describe_gradient<BackwardData>(forward(hint), algorithm, wanted.x, wanted.weight, wanted.y, stride, padding, padding);
      return calls_of<BackwardData>(
          chosen, {{DNNL_ARG_DIFF_DST, y, chosen.diff_dst_desc()}, {DNNL_ARG_WEIGHTS, weight, chosen.weights_desc()}},
          {DNNL_ARG_DIFF_SRC, x, chosen.diff_src_desc()});
    }
    if (pass != "backward_weight") throw std::invalid_argument("unknown pass '" + pass + "'");
    const auto chosen =
        describe_gradient<BackwardWeights>(forward(hint), algorithm, wanted.x, wanted.weight, wanted.y, stride, padding, padding);
    return calls_of<BackwardWeights>(chosen,
                                     {{DNNL_ARG_SRC, x, chosen.src_desc()}, {DNNL_ARG_DIFF_DST, y, chosen.diff_dst_desc()}},
                                     {DNNL_ARG_DIFF_WEIGHTS, weight, chosen.diff_weights_desc()});
  }
};

Case convolution(Type type, const std::string& pass, const ConvShape& s) {
  const std::int64_t padding = s.kernel / 2, out_size = (s.size + 2 * padding - s.kernel) / s.stride + 1;
  const bool of_weight = pass == "backward_weight";
  const Operand x = nhwc({s.n, s.size, s.size, s.in}, type), y = nhwc({s.n, out_size, out_size, s.out}, type);
  const Operand weight = weight_of(s, of_weight ? Type::f32 : type);
  const Convolution conv{pass,
                         {s.stride, s.stride},
                         {padding, padding},
                         random_numbers(x, 1),
                         random_numbers(weight, 2),
                         random_numbers(y, 3),
                         {x.any(), weight_of(s, type).any(), y.any()}};
  const auto direct = dnnl::algorithm::convolution_direct, winograd = dnnl::algorithm::convolution_winograd;
  const Layouts any{x.any(), weight.any(), y.any()};
  Case made;
  add(made, "plain layouts", [&] { return conv.with({x.ours(), weight.ours(), y.ours()}, direct); });
  add(made, "NHWC, any weights", [&] { return conv.with({x.ours(), weight.any(), y.ours()}, direct); });
  add(made, "any layout", [&] { return conv.with(any, direct); });
  add(made, "Winograd", [&] { return conv.with(any, winograd); });
  made.output = pass == "forward" ? y : of_weight ? weight : x;
  made.result = pass == "forward" ? conv.y : of_weight ? conv.weight : conv.x;
  return made;
}

Type type_of(const std::string& name) {
  if (name == "f32") return Type::f32;
  if (name == "bf16") return Type::bf16;
  throw std::invalid_argument("unknown type '" + name + "'");
}

Case case_of(std::istringstream& words, const std::string& kind) {
  std::string type, pass;
  words >> type;
  if (kind == "product") {
    std::int64_t m = 0, n = 0, k = 0;
    words >> m >> n >> k;
    return product(type_of(type), m, n, k);
  }
  ConvShape s{};
  words >> pass >> s.n >> s.size >> s.in >> s.out >> s.kernel >> s.stride >> s.groups;
  if (kind != "conv" || words.fail()) throw std::invalid_argument("unknown case '" + words.str() + "'");
  return convolution(type_of(type), pass, s);
}

double seconds(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The mean over 20 ms of calls, after one call that fills the caches and wakes the threads.
double milliseconds(const Way& way) {
  const double once = seconds(way.run);
  const int calls = std::clamp(static_cast<int>(0.02 / once), 1, 1000);
  const double all = seconds([&] {
    for (int i = 0; i < calls; ++i) way.run();
  });
  return 1e3 * all / calls;
}

int answer() {
  const dnnl::version_t* version = dnnl::version();
  std::cout << DNNL_VERSION_MAJOR << '.' << DNNL_VERSION_MINOR << '.' << DNNL_VERSION_PATCH << '\t' << version->major << '.'
            << version->minor << '.' << version->patch << std::endl;
  Case current;
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream words(text);
    std::string kind;
    words >> kind;
    if (kind == "run") {
      for (const Way& way : current.ways) std::cout << milliseconds(way) << '\t';
    } else {
      current = case_of(words, kind);
      for (const Way& way : current.ways) {
        spoil(current.output, current.result);
        way.run();
        std::cout << way.name << '=' << magnitude(current.output, current.result) << '\t';
      }
    }
    std::cout << std::endl;
  }
  return 0;
}

}  // namespace

int main() {
  try {
    return answer();
  } catch (const std::exception& error) {
    std::cerr << "onednn_versions: " << error.what() << '\n';
    return 1;
  }
}
