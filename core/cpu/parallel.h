// Splits index ranges over the OpenMP threads in fixed, contiguous parts: the same thread count gives the same split, so
// that reductions over parts reproduce.
#pragma once

#include <omp.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>

namespace tessera::cpu {

// Below this many elements per thread a parallel region costs more than it saves.
inline constexpr std::int64_t kGrain = 8192;

inline int parts_for(std::int64_t count, std::int64_t grain = kGrain) {
  if (omp_in_parallel()) return 1;
  return static_cast<int>(std::clamp<std::int64_t>(count / std::max<std::int64_t>(grain, 1), 1, omp_get_max_threads()));
}

// Where `one` is true, libraries that are called in the scope run in one thread: for work that is too little for more.
class OneThread {
 public:
  explicit OneThread(bool one = true) : before_(omp_get_max_threads()) {
    if (one) omp_set_num_threads(1);
  }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

// Products of fewer operations run in one thread, which is done before a team would be awake: waking one takes some 10 us.
inline constexpr double kLeastFlopsForThreads = 5e5;

// How many threads a product of so many operations is worth, at most one for each task.
inline int threads_for(double flops, std::int64_t tasks = std::numeric_limits<std::int64_t>::max()) {
  if (omp_in_parallel() || flops < kLeastFlopsForThreads) return 1;
  return static_cast<int>(std::min<std::int64_t>(omp_get_max_threads(), tasks));
}

// Calls body(begin, end, part) for `parts` contiguous parts of [0, count), each on its own thread. Rethrows the first exception.
// Afterwards every thread sees what each body stored, also what it stored past the caches.
//
// The team is never smaller than omp_get_max_threads(), even if there are fewer parts: libgomp ends the threads that a smaller
// team leaves out and starts others for the next large one.
template <class Body>
void parallel_parts(std::int64_t count, int parts, Body&& body) {
  if (parts <= 1) {
    if (count <= 0) return;
    body(std::int64_t{0}, count, 0);
    return _mm_sfence();
  }
  std::exception_ptr failure;
  const int team = std::max(parts, omp_get_max_threads());
#pragma omp parallel for schedule(static, 1) num_threads(team)
  for (int part = 0; part < parts; ++part) {
    try {
      const std::int64_t begin = count * part / parts;
      const std::int64_t end = count * (part + 1) / parts;
      if (begin >= end) continue;
      body(begin, end, part);
      _mm_sfence();
    } catch (...) {
#pragma omp critical(tessera_parallel_failure)
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

// Calls body(begin, end) over [0, count). `grain` is the smallest part worth a thread of its own.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
  parallel_parts(count, parts_for(count, grain), [&](std::int64_t begin, std::int64_t end, int) { body(begin, end); });
}

// How many parts rows of `columns` elements are worth.
inline int row_parts(std::int64_t rows, std::int64_t columns) {
  return static_cast<int>(std::min<std::int64_t>(parts_for(rows * columns), std::max<std::int64_t>(rows, 1)));
}

// Calls body(begin, end, part) for row_parts() parts of the rows.
template <class Body>
void parallel_rows(std::int64_t rows, std::int64_t columns, Body&& body) {
  parallel_parts(rows, row_parts(rows, columns), body);
}

}  // namespace tessera::cpu
