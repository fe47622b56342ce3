// Attention as plain loops in double, by the definition.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/ops/attention_math.h"

namespace tessera::cpu::reference {

// Where rows of heads lie: element (batch, position, head, c) at batch * this->batch + position * this->position + head *
// this->head + c.
struct HeadRows {
  double* at;
  std::int64_t batch, position, head;
  double* operator()(std::int64_t b, std::int64_t p, std::int64_t h) const { return at + b * batch + p * position + h * head; }
};

// clang-14 does not deduce an aggregate's arguments by itself.
template <class Sees, class Factor>
struct Attention;
template <class Sees, class Factor>
Attention(AttentionForm, HeadRows, HeadRows, HeadRows, Sees, Factor) -> Attention<Sees, Factor>;

// sees(batch, head, query, key): whether it does. factor(row, key): what the probability is multiplied by after softmax; 0 where
// it is dropped.
template <class Sees, class Factor>
struct Attention {
  AttentionForm form;
  HeadRows q, k, v;
  Sees sees;
  Factor factor;

  std::int64_t row(std::int64_t b, std::int64_t h, std::int64_t i) const { return (b * form.heads + h) * form.queries + i; }

  // exp(scores) of one query, 0 where it does not see the key.
  std::vector<double> scores(std::int64_t b, std::int64_t h, std::int64_t i, std::vector<bool>& seen) const {
    std::vector<double> all(static_cast<std::size_t>(form.keys), 0.0);
    seen.assign(all.size(), false);
    for (std::int64_t j = 0; j < form.keys; ++j) {
      if (!sees(b, h, i, j)) continue;
      const double* const from = q(b, i, h);
      const double* const to = k(b, j, h / form.group());
      double sum = 0;
      for (std::int64_t c = 0; c < form.width; ++c) sum += from[c] * to[c];
      all[static_cast<std::size_t>(j)] = form.scale * sum;
      seen[static_cast<std::size_t>(j)] = true;
    }
    return all;
  }

  void forward(const HeadRows& y, double* log_sums) const {
    for_each_query([&](std::int64_t b, std::int64_t h, std::int64_t i) {
      std::vector<bool> seen;
      const std::vector<double> s = scores(b, h, i, seen);
      double top = -INFINITY, total = 0;
      for (std::size_t j = 0; j < s.size(); ++j) top = seen[j] && !(s[j] <= top) ? s[j] : top;
      for (std::size_t j = 0; j < s.size(); ++j) total += seen[j] ? std::exp(s[j] - top) : 0;
      log_sums[row(b, h, i)] = total == 0 ? 0 : top + std::log(total);
      double* const to = y(b, i, h);
      for (std::int64_t c = 0; c < form.width; ++c) to[c] = 0;
      for (std::size_t j = 0; j < s.size(); ++j) {
        if (!seen[j]) continue;
        const auto key = static_cast<std::int64_t>(j);
        const double p = std::exp(s[j] - top) / total * factor(row(b, h, i), key);
        const double* const from = v(b, key, h / form.group());
        for (std::int64_t c = 0; c < form.width; ++c) to[c] += p * from[c];
      }
    });
  }

  // Gradients are added to.
  void backward(const HeadRows& y, const double* log_sums, const HeadRows& grad_y, const HeadRows& grad_q, const HeadRows& grad_k,
                const HeadRows& grad_v) const {
    for_each_query([&](std::int64_t b, std::int64_t h, std::int64_t i) {
      std::vector<bool> seen;
      const std::vector<double> s = scores(b, h, i, seen);
      const double* const g = grad_y(b, i, h);
      double inner = 0;
      for (std::int64_t c = 0; c < form.width; ++c) inner += g[c] * y(b, i, h)[c];
      for (std::size_t j = 0; j < s.size(); ++j) {
        if (!seen[j]) continue;
        const auto key = static_cast<std::int64_t>(j);
        const std::int64_t kv = h / form.group();
        const double p = std::exp(s[j] - log_sums[row(b, h, i)]), kept = factor(row(b, h, i), key);
        double grad_p = 0;
        for (std::int64_t c = 0; c < form.width; ++c) {
          grad_p += g[c] * v(b, key, kv)[c] * kept;
          grad_v(b, key, kv)[c] += p * kept * g[c];
        }
        const double grad_score = form.scale * p * (grad_p - inner);
        for (std::int64_t c = 0; c < form.width; ++c) {
          grad_q(b, i, h)[c] += grad_score * k(b, key, kv)[c];
          grad_k(b, key, kv)[c] += grad_score * q(b, i, h)[c];
        }
      }
    });
  }

 private:
  template <class Body>
  void for_each_query(const Body& body) const {
    for (std::int64_t b = 0; b < form.batch; ++b) {
      for (std::int64_t h = 0; h < form.heads; ++h) {
        for (std::int64_t i = 0; i < form.queries; ++i) body(b, h, i);
      }
    }
  }
};

}  // namespace tessera::cpu::reference
