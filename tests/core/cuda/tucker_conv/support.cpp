#include "tests/core/cuda/tucker_conv/support.h"

#include <random>

namespace tessera::cuda {
namespace {

Numbers random_numbers(std::size_t size, unsigned seed) {
  std::mt19937 generator(seed);
  Numbers numbers(size);
  for (double& number : numbers) number = static_cast<double>(generator() % 31) / 16 - 15.0 / 16;
  return numbers;
}

Numbers transposed(const Numbers& weight, int outer, int taps, int inner) {
  Numbers result(weight.size());
  for (int o = 0; o < outer; ++o) {
    for (int t = 0; t < taps; ++t) {
      for (int i = 0; i < inner; ++i) {
        const double number = weight[static_cast<std::size_t>((o * taps + t) * inner + i)];
        result[static_cast<std::size_t>((i * taps + t) * outer + o)] = number;
      }
    }
  }
  return result;
}

}  // namespace

// Calls tap(first channel before, first channel after, tap).
template <class Tap>
void PlainConv::for_each_tap(const Tap& tap) const {
  for (int n = 0; n < images; ++n) {
    for (int i = 0; i < rows.outs; ++i) {
      for (int j = 0; j < columns.outs; ++j) {
        for (int t = 0; t < rows.kernel * columns.kernel; ++t) {
          const int y = i * rows.stride - rows.padding + t / columns.kernel;
          const int x = j * columns.stride - columns.padding + t % columns.kernel;
          if (y < 0 || y >= rows.image || x < 0 || x >= columns.image) continue;
          tap(static_cast<std::size_t>(((n * rows.image + y) * columns.image + x) * in),
              static_cast<std::size_t>(((n * rows.outs + i) * columns.outs + j) * out), t);
        }
      }
    }
  }
}

Numbers PlainConv::forward(const Numbers& x, const Numbers& weight) const {
  Numbers y(static_cast<std::size_t>(images * rows.outs * columns.outs * out));
  const int taps = rows.kernel * columns.kernel;
  const Numbers by_input = transposed(weight, out, taps, in);
  for_each_tap([&](std::size_t before, std::size_t after, int t) {
    for (int c = 0; c < in; ++c) {
      const double factor = x[before + static_cast<std::size_t>(c)];
      const double* row = by_input.data() + static_cast<std::ptrdiff_t>(c * taps + t) * out;
      for (int o = 0; o < out; ++o) y[after + static_cast<std::size_t>(o)] += factor * row[o];
    }
  });
  return y;
}

Numbers PlainConv::backward_input(const Numbers& grad_y, const Numbers& weight) const {
  Numbers grad_x(static_cast<std::size_t>(images * rows.image * columns.image * in));
  for_each_tap([&](std::size_t before, std::size_t after, int t) {
    for (int o = 0; o < out; ++o) {
      const double factor = grad_y[after + static_cast<std::size_t>(o)];
      const double* row = weight.data() + static_cast<std::ptrdiff_t>(o * rows.kernel * columns.kernel + t) * in;
      for (int c = 0; c < in; ++c) grad_x[before + static_cast<std::size_t>(c)] += factor * row[c];
    }
  });
  return grad_x;
}

Numbers PlainConv::backward_weight(const Numbers& x, const Numbers& grad_y) const {
  Numbers grad(static_cast<std::size_t>(out * rows.kernel * columns.kernel * in));
  for_each_tap([&](std::size_t before, std::size_t after, int t) {
    for (int o = 0; o < out; ++o) {
      const double factor = grad_y[after + static_cast<std::size_t>(o)];
      double* row = grad.data() + static_cast<std::ptrdiff_t>(o * rows.kernel * columns.kernel + t) * in;
      for (int c = 0; c < in; ++c) row[c] += factor * x[before + static_cast<std::size_t>(c)];
    }
  });
  return grad;
}

Problem random_problem(const TuckerConvShape& conv) {
  Problem p;
  p.conv = conv;
  const ChainShape shape = chain_shape(conv, false, 1, 1);
  const CoreAxis rows = conv.rows(), columns = conv.columns();
  const auto pointwise = [](int size) { return CoreAxis{size, size, 1, 1, 0}; };
  const PlainConv in{shape.images, pointwise(rows.image), pointwise(columns.image), shape.wide_in, shape.narrow_in};
  const PlainConv core{shape.images, rows, columns, shape.narrow_in, shape.narrow_out};
  const PlainConv out{shape.images, pointwise(rows.outs), pointwise(columns.outs), shape.narrow_out, shape.wide_out};
  const auto count = [](auto... sizes) { return (std::size_t{1} * ... * static_cast<std::size_t>(sizes)); };
  p.x = random_numbers(count(shape.images, rows.image, columns.image, shape.wide_in), 1);
  if (conv.in_factor) p.in_factor = random_numbers(count(shape.narrow_in, shape.wide_in), 2);
  p.core = random_numbers(count(shape.narrow_out, shape.taps(), shape.narrow_in), 3);
  if (conv.out_factor) p.out_factor = random_numbers(count(shape.wide_out, shape.narrow_out), 4);
  p.bias = random_numbers(count(shape.wide_out), 5);
  p.grad_y = random_numbers(count(shape.images, rows.outs, columns.outs, shape.wide_out), 6);

  p.narrow_in = conv.in_factor ? in.forward(p.x, p.in_factor) : p.x;
  p.narrow_out = core.forward(p.narrow_in, p.core);
  p.y = conv.out_factor ? out.forward(p.narrow_out, p.out_factor) : p.narrow_out;
  p.grad_narrow_out = conv.out_factor ? out.backward_input(p.grad_y, p.out_factor) : p.grad_y;
  p.grad_narrow_in = core.backward_input(p.grad_narrow_out, p.core);
  p.grad_x = conv.in_factor ? in.backward_input(p.grad_narrow_in, p.in_factor) : p.grad_narrow_in;
  p.grad_core = core.backward_weight(p.narrow_in, p.grad_narrow_out);
  if (conv.in_factor) p.grad_in_factor = in.backward_weight(p.x, p.grad_narrow_in);
  if (conv.out_factor) p.grad_out_factor = out.backward_weight(p.narrow_out, p.grad_y);
  p.grad_bias.resize(p.bias.size());
  for (std::size_t i = 0; i < p.grad_y.size(); ++i) p.grad_bias[i % p.bias.size()] += p.grad_y[i];
  for (std::size_t i = 0; i < p.y.size(); ++i) p.y[i] += p.bias[i % p.bias.size()];
  return p;
}

}  // namespace tessera::cuda
