#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "core/compute_type.h"
#include "core/cpu/attention/element_tiles.h"
#include "core/cpu/attention/problem.h"
#include "core/cpu/parallel.h"
#include "core/cpu/reference/attention.h"
#include "core/device/step_state.h"
#include "core/ops/attention.h"
#include "core/ops/attention_few_cpu.h"
#include "core/ops/attention_rows_cpu.h"
#include "core/ops/dropout_math.h"
#include "core/support/rounding.h"

namespace tessera::cpu {
namespace {

using attention::copy_rows;
using attention::kKeys;
using attention::kLanes;
using attention::kQueries;
using attention::kRowsAhead;
using attention::Pair;
using attention::Rows;
using attention::rows_of;
using attention::write_rows;

template <class T>
const attention::Kernels& kernels_for() {
  return std::is_same_v<T, bfloat16> ? attention::kernels_of_bf16() : attention::kernels();
}

attention::Dropout dropout_of(const AttentionOperands& operands) {
  if (operands.dropout == 0) return {};
  return {operands.dropout, dropout_threshold(operands.dropout), operands.stream,
          dropout_step(step_state_data(operands.step_state))};
}

// The tiles of a head's queries. With a pattern, tiles begin at multiples of kQueries positions, as the pattern's lists do.
struct Tiles {
  std::int64_t before = 0;  // lanes of the first tile that come before the first query
  std::int64_t count;

  explicit Tiles(const AttentionOperands& operands) {
    const AttentionForm& f = operands.form;
    if (operands.pattern) before = f.position(0) % kQueries;
    count = ceil_div(before + f.queries, kQueries);
  }
  // The query in lane 0 of a tile. It is negative if that lane does not exist.
  std::int64_t first(std::int64_t tile) const { return tile * kQueries - before; }
};

// Floats from one row of a head to the next, in f32 buffers.
std::int64_t pitch_of(const AttentionForm& form) { return round_up(form.width, kLanes); }

// State and buffers of one thread, which goes through heads of keys and tiles of queries.
template <class T>
class Worker {
 public:
  Worker(const AttentionOperands& operands, bool backwards) : o_(operands), f_(operands.form), dropout_(dropout_of(operands)) {
    pitch_ = pitch_of(f_);
    const std::int64_t keys = f_.keys * pitch_, rows = kQueries * pitch_, tile = f_.width * kQueries;
    const std::int64_t scratch = (backwards ? 3 : 2) * kKeys * kQueries;
    memory_ = Tensor::empty({(backwards ? 4 : 2) * keys + 3 * rows + 3 * tile + scratch + 2 * kQueries});
    float* at = memory_.template data<float>();
    const auto take = [&](std::int64_t count) { return std::exchange(at, at + count); };
    if (kernels_.pair_down != nullptr) take_pairs(backwards);
    k_ = take(keys), v_ = take(keys);
    if (backwards) grad_k_ = take(keys), grad_v_ = take(keys);
    q_rows_ = take(rows), g_rows_ = take(rows), y_rows_ = take(rows);
    q_ = take(tile), g_ = take(tile), out_ = take(tile);
    scores_ = take(scratch), log_sums_ = take(kQueries), inner_ = take(kQueries);
  }

  // Tensors that a tile writes. `of_keys` is written after the last tile of a head of keys.
  struct Written {
    const Tensor& of_queries;
    std::array<const Tensor*, 2> of_keys = {};
  };

  // The products of this tile prefetch the rows that it writes afterwards, the next tile's rows of q and of `others`, and a share
  // of the next head's keys and values. The rows of a head are a whole position apart, too far for the hardware prefetcher. What
  // is needed last is fetched last: if the products end earlier, it is not fetched.
  void look_ahead(const Tiles& tiles, std::int64_t unit, std::int64_t turn, const Written& written,
                  std::initializer_list<const Tensor*> others) {
    ahead_ = {};
    const std::int64_t turns = f_.group() * tiles.count, units = f_.batch * f_.kv_heads;
    const bool last = turn + 1 == turns;
    const std::int64_t next_unit = last ? unit + 1 : unit, next_turn = last ? 0 : turn + 1;
    const auto fetch_queries = [&](const Tensor& x, std::int64_t of_unit, std::int64_t of_turn) {
      const std::int64_t first = tiles.first(of_turn % tiles.count);
      fetch_later(x, of_unit / f_.kv_heads, of_unit % f_.kv_heads * f_.group() + of_turn / tiles.count,
                  std::max<std::int64_t>(first, 0), std::min(first + kQueries, f_.queries));
    };
    const auto fetch_keys = [&](const Tensor& x, std::int64_t of_unit) {  // each tile of this unit fetches an equal share
      fetch_later(x, of_unit / f_.kv_heads, of_unit % f_.kv_heads, f_.keys * turn / turns, f_.keys * (turn + 1) / turns);
    };
    fetch_queries(written.of_queries, unit, turn);
    if (next_unit != units) {
      fetch_queries(o_.q, next_unit, next_turn);
      for (const Tensor* const x : others) fetch_queries(*x, next_unit, next_turn);
    }
    for (const Tensor* const x : written.of_keys) {
      if (x != nullptr) fetch_keys(*x, unit);
    }
    if (unit + 1 == units) return;
    for (const Tensor* const x : {&o_.k, &o_.v}) fetch_keys(*x, unit + 1);
  }

  // Loads the keys and values of head `unit`, counted over the batch.
  void hold_keys(std::int64_t unit) {
    if (held_ == unit) return;
    held_ = unit;
    copy_rows<T>(rows_of<T>(o_.k, unit / f_.kv_heads, unit % f_.kv_heads), 0, f_.keys, f_.width, 1, k_, pitch_);
    copy_rows<T>(rows_of<T>(o_.v, unit / f_.kv_heads, unit % f_.kv_heads), 0, f_.keys, f_.width, 1, v_, pitch_);
    pair_rows(k_, f_.keys, pairs_.k);
    pair_rows(v_, f_.keys, pairs_.v);
    pair_down(k_, f_.keys, pitch_, pairs_.k_down);
    pair_down(v_, f_.keys, pitch_, pairs_.v_down);
  }

  void forward(std::int64_t batch, std::int64_t head, std::int64_t first, const AttentionResults& results) {
    const attention::Queries queries = take_queries(batch, head, first);
    kernels_.forward({f_, dropout_, keys(batch), queries, far(batch, head, queries), scores_, out_, log_sums_, pairs_, &ahead_});
    kernels_.turn_back(out_, f_.width, y_rows_, pitch_);
    write_lanes(y_rows_, 1, queries, rows_of<T>(results.y, batch, head));
    std::copy(log_sums_ + queries.begin, log_sums_ + queries.end, results.log_sums.data<float>() + queries.row + queries.begin);
  }

  void begin_gradients() {
    std::fill_n(grad_k_, f_.keys * pitch_, 0.0F);
    std::fill_n(grad_v_, f_.keys * pitch_, 0.0F);
  }

  void backward(std::int64_t batch, std::int64_t head, std::int64_t first, const AttentionResults& results, const Tensor& grad_y,
                const Tensor& grad_q) {
    const attention::Queries queries = take_queries(batch, head, first);
    take_lanes(rows_of<T>(grad_y, batch, head), queries, 1, g_rows_);
    kernels_.turn(g_rows_, pitch_, f_.width, g_);
    pair_down(g_, f_.width, kQueries, pairs_.grad_y);
    pair_down(g_rows_, kQueries, pitch_, pairs_.grad_y_down);
    const Rows<T> y = rows_of<T>(results.y, batch, head);
    std::fill_n(inner_, kQueries, 0.0F);
    std::fill_n(log_sums_, kQueries, 0.0F);
    for (std::int64_t i = queries.begin; i < queries.end; ++i) {
      if (i + kRowsAhead < queries.end) attention::fetch(y.row(first + i + kRowsAhead), f_.width);
      inner_[i] = attention::dot(g_rows_ + i * pitch_, y.row(first + i), f_.width);
      log_sums_[i] = results.log_sums.data<float>()[queries.row + i];
    }
    kernels_.backward({f_, dropout_, keys(batch), queries, far(batch, head, queries), g_, g_rows_, log_sums_, inner_, scores_,
                       out_, grad_k_, grad_v_, pairs_, &ahead_});
    kernels_.turn_back(out_, f_.width, y_rows_, pitch_);
    write_lanes(y_rows_, static_cast<float>(f_.scale), queries, rows_of<T>(grad_q, batch, head));
  }

  void write_gradients(std::int64_t unit, const AttentionGrads& grads) const {
    for (const auto& [from, tensor] : {std::pair(grad_k_, grads.k), std::pair(grad_v_, grads.v)}) {
      write_rows<T>(from, pitch_, 1, 0, f_.keys, f_.width, rows_of<T>(tensor, unit / f_.kv_heads, unit % f_.kv_heads));
    }
  }

  // Copies the gradients to [k, v][keys][pitch].
  void copy_gradients(float* to) const { std::copy_n(grad_v_, f_.keys * pitch_, std::copy_n(grad_k_, f_.keys * pitch_, to)); }

 private:
  void fetch_later(const Tensor& x, std::int64_t batch, std::int64_t head, std::int64_t begin, std::int64_t end) {
    const Rows<T> rows = rows_of<T>(x, batch, head);
    constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
    ahead_.add(rows.row(begin), rows.stride * kSize, f_.width * kSize, end - begin);
  }
  void take_pairs(bool backwards) {
    const std::int64_t in_rows = f_.keys * pitch_ / 2, down = (f_.keys + 1) / 2 * pitch_;
    const std::int64_t turned = (f_.width + 1) / 2 * kQueries, rows = kQueries / 2 * pitch_;
    const std::int64_t scratch = (backwards ? 3 : 1) * kKeys * kQueries / 2;
    const std::int64_t all = in_rows + down + turned + scratch + (backwards ? in_rows + turned + 2 * rows : 0);
    pair_memory_ = Tensor::empty({2 * all}, DType::bf16);
    auto* at = static_cast<Pair*>(pair_memory_.raw());
    const auto take = [&](std::int64_t count) { return std::exchange(at, at + count); };
    pairs_.k = take(in_rows), pairs_.q = take(turned), pairs_.scores = take(scratch);
    (backwards ? pairs_.k_down : pairs_.v_down) = take(down);
    if (!backwards) return;
    pairs_.v = take(in_rows), pairs_.grad_y = take(turned);
    pairs_.q_down = take(rows), pairs_.grad_y_down = take(rows);
  }
  void pair_rows(const float* rows, std::int64_t count, Pair* to) const {
    if (to != nullptr) kernels_.pair_rows(rows, count, pitch_, pitch_, to);
  }
  void pair_down(const float* rows, std::int64_t count, std::int64_t pitch, Pair* to) const {
    if (to != nullptr) kernels_.pair_down(rows, count, pitch, pitch, to);
  }
  attention::Keys keys(std::int64_t batch) const {
    const bool masked = o_.key_mask.defined();
    return {k_, v_, pitch_, masked ? o_.key_mask.data<std::uint8_t>() + batch * f_.keys : nullptr};
  }

  attention::Queries take_queries(std::int64_t batch, std::int64_t head, std::int64_t first) {
    const attention::Queries queries{first,
                                     std::max<std::int64_t>(-first, 0),
                                     std::min(kQueries, f_.queries - first),
                                     (batch * f_.heads + head) * f_.queries + first,
                                     q_,
                                     q_rows_};
    take_lanes(rows_of<T>(o_.q, batch, head), queries, static_cast<float>(f_.scale), q_rows_);
    kernels_.turn(q_rows_, pitch_, f_.width, q_);
    pair_down(q_, f_.width, kQueries, pairs_.q);
    pair_down(q_rows_, kQueries, pitch_, pairs_.q_down);
    return queries;
  }

  // Copies the rows of the lanes that exist. The other lanes become zeros.
  void take_lanes(const Rows<T>& from, const attention::Queries& queries, float scale, float* to) const {
    const std::int64_t begin = queries.begin, end = queries.end;
    std::fill(to, to + begin * pitch_, 0.0F);
    copy_rows<T>(from, queries.first + begin, end - begin, f_.width, scale, to + begin * pitch_, pitch_);
    std::fill(to + end * pitch_, to + kQueries * pitch_, 0.0F);
  }

  void write_lanes(const float* from, float scale, const attention::Queries& queries, const Rows<T>& to) const {
    const std::int64_t begin = queries.begin;
    write_rows<T>(from + begin * pitch_, pitch_, scale, queries.first + begin, queries.end - begin, f_.width, to);
  }

  // What the pattern keeps outside its band.
  attention::Far far(std::int64_t batch, std::int64_t head, const attention::Queries& queries) {
    attention::Far all{{}, {}, y_rows_};
    if (!o_.pattern) return all;
    const AttentionPattern& pattern = *o_.pattern;
    const std::int64_t at = f_.position(queries.first), side = pattern.options().block;
    const std::span<const std::int64_t> offsets =
        pattern.offsets().subspan(static_cast<std::size_t>(head * pattern.units() + at / side));
    if (side == 1) {
      all.elements = pattern.tiles().tile(head, at / kQueries, offsets.front());
      const bool whole = queries.begin == 0 && (pattern.options().causal || f_.keys == pattern.options().positions);
      if (whole && queries.end == kQueries && !o_.key_mask.defined()) return all;
      all.elements = chosen_.choose(all.elements, queries.begin, queries.end, f_.keys, keys(batch).mask);
      return all;
    }
    all.blocks.side = side;
    all.blocks.keys = pattern.keys().data();
    for (std::int64_t row = 0; row <= kQueries / side; ++row) {
      const std::int64_t first = std::max(queries.begin / side, row), end = ceil_div(queries.end, side);
      all.blocks.offsets[row] = offsets[static_cast<std::size_t>(std::min(first, end))];
    }
    return all;
  }

  const AttentionOperands& o_;
  const AttentionForm& f_;
  const attention::Kernels& kernels_ = kernels_for<T>();
  attention::ChosenElements chosen_;
  attention::Dropout dropout_;
  std::int64_t pitch_;
  Tensor memory_, pair_memory_;
  FetchAhead ahead_;
  attention::PairedTile pairs_;  // those that the worker's pass does not read are null
  std::int64_t held_ = -1;
  float *k_, *v_, *grad_k_ = nullptr, *grad_v_ = nullptr, *q_rows_, *g_rows_, *y_rows_, *q_, *g_, *out_, *scores_, *log_sums_,
                  *inner_;
};

int threads_of(const AttentionForm& f, std::int64_t tasks) {
  return threads_for(4.0 * static_cast<double>(f.batch * f.heads * f.queries) * static_cast<double>(f.keys * f.width), tasks);
}

template <class T>
void forward(const AttentionOperands& operands, const AttentionResults& results) {
  const AttentionForm& f = operands.form;
  const Tiles tiles(operands);
  const std::int64_t tasks = f.batch * f.heads * tiles.count, turns = f.group() * tiles.count;
  parallel_parts(tasks, threads_of(f, tasks), [&](std::int64_t begin, std::int64_t end, int) {
    Worker<T> worker(operands, false);
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t head = task / tiles.count % f.heads, batch = task / tiles.count / f.heads;
      worker.hold_keys(batch * f.kv_heads + head / f.group());
      worker.look_ahead(tiles, task / turns, task % turns, {results.y}, {});
      worker.forward(batch, head, tiles.first(task % tiles.count), results);
    }
  });
}

// Adds up the sums that `parts` tasks have of each head of keys, [heads][parts][k, v][keys][pitch], and writes the gradients.
template <class T>
void add_parts(const AttentionForm& f, std::int64_t parts, std::int64_t pitch, float* sums, const AttentionGrads& grads) {
  const std::int64_t size = 2 * f.keys * pitch;
  for (std::int64_t unit = 0; unit < f.batch * f.kv_heads; ++unit, sums += parts * size) {
    const Rows<T> k = rows_of<T>(grads.k, unit / f.kv_heads, unit % f.kv_heads);
    const Rows<T> v = rows_of<T>(grads.v, unit / f.kv_heads, unit % f.kv_heads);
    parallel_for(2 * f.keys, std::max<std::int64_t>(kGrain / (parts * pitch), 1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        float* const sum = sums + row * pitch;
        for (std::int64_t part = 1; part < parts; ++part) {
          for (std::int64_t c = 0; c < pitch; ++c) sum[c] += sum[part * size + c];
        }
        write_rows<T>(sum, pitch, 1, row % f.keys, 1, f.width, row < f.keys ? k : v);
      }
    });
  }
}

constexpr std::int64_t kLeastTasks = 4;

// With enough heads of keys, each head is a task. Otherwise several tasks share a head, and each takes some of its query tiles.
// The split does not depend on the number of threads, so the order of the sums is fixed.
template <class T>
void backward(const AttentionOperands& operands, const AttentionResults& results, const Tensor& grad_y,
              const AttentionGrads& grads) {
  const AttentionForm& f = operands.form;
  const Tiles tiles(operands);
  const std::int64_t units = f.batch * f.kv_heads, turns = f.group() * tiles.count;
  const std::int64_t parts = units >= kLeastTasks ? 1 : std::clamp<std::int64_t>(turns, 1, kLeastTasks);
  const std::int64_t pitch = pitch_of(f), size = 2 * f.keys * pitch;
  const Tensor sums = Tensor::empty({parts == 1 ? 0 : units * parts * size});
  parallel_parts(units * parts, threads_of(f, units * parts), [&](std::int64_t begin, std::int64_t end, int) {
    Worker<T> worker(operands, true);
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t unit = task / parts;
      worker.hold_keys(unit);
      worker.begin_gradients();
      for (std::int64_t turn = task % parts; turn < turns; turn += parts) {
        const std::int64_t head = unit % f.kv_heads * f.group() + turn / tiles.count;
        if (parts == 1) worker.look_ahead(tiles, unit, turn, {grads.q, {&grads.k, &grads.v}}, {&grad_y, &results.y});
        worker.backward(unit / f.kv_heads, head, tiles.first(turn % tiles.count), results, grad_y, grads.q);
      }
      if (parts == 1) {
        worker.write_gradients(unit, grads);
      } else {
        worker.copy_gradients(sums.data<float>() + task * size);
      }
    }
  });
  if (parts > 1) add_parts<T>(f, parts, pitch, sums.data<float>(), grads);
}

reference::HeadRows head_rows(const Tensor& x) { return {x.data<double>(), x.strides()[0], x.strides()[1], x.strides()[2]}; }

auto in_double(const AttentionOperands& operands) {
  const attention::Dropout dropout = dropout_of(operands);
  const auto factor = [dropout, form = operands.form](std::int64_t row, std::int64_t key) {
    if (dropout.rate == 0) return 1.0;
    const auto words = random_words(dropout.stream, dropout.step, form.random_block(row, key));
    return is_kept(words[static_cast<std::size_t>(key % 4)], dropout.threshold) ? 1 / (1 - dropout.rate) : 0.0;
  };
  const std::uint8_t* const mask = operands.key_mask.defined() ? operands.key_mask.data<std::uint8_t>() : nullptr;
  const auto sees = [form = operands.form, mask, pattern = operands.pattern](std::int64_t batch, std::int64_t head,
                                                                             std::int64_t query, std::int64_t key) {
    if (mask != nullptr && mask[batch * form.keys + key] == 0) return false;
    if (key >= form.first_key(query) && key < form.end_key(query)) return true;
    return pattern && pattern->sees_beside_band(head, form.position(query), key);
  };
  return reference::Attention{operands.form, head_rows(operands.q), head_rows(operands.k), head_rows(operands.v), sees, factor};
}

}  // namespace

void attention_forward(const AttentionOperands& operands, const AttentionResults& results) {
  if (results.y.numel() == 0) return;
  if (are_few_queries(operands)) return attention_few_forward(operands, results);
  dispatch_floating(operands.q.dtype(), "attention", [&]<class T>() {
    if constexpr (std::is_same_v<T, double>) {
      in_double(operands).forward(head_rows(results.y), results.log_sums.data<double>());
    } else {
      forward<T>(operands, results);
    }
  });
}

void attention_backward(const AttentionOperands& operands, const AttentionResults& results, const Tensor& grad_y,
                        const AttentionGrads& grads) {
  dispatch_floating(operands.q.dtype(), "attention_backward", [&]<class T>() {
    if constexpr (std::is_same_v<T, double>) {
      for (const Tensor& grad : {grads.q, grads.k, grads.v}) grad.fill(0);
      in_double(operands).backward(head_rows(results.y), results.log_sums.data<double>(), head_rows(grad_y), head_rows(grads.q),
                                   head_rows(grads.k), head_rows(grads.v));
    } else {
      if (grads.k.numel() == 0 && grads.q.numel() == 0) return;
      backward<T>(operands, results, grad_y, grads);
    }
  });
}

}  // namespace tessera::cpu
