#include "thread_pool.h"

#include <chrono>

namespace kaiwa {
namespace {

// Long enough to bridge what a scheduler does between two steps (waking from sleep took a tenth of the speed of one
// answer), short enough to cost nothing when idle.
constexpr std::chrono::microseconds spin_time{300};

void relax() {
#if defined(__x86_64__) || defined(_M_X64)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once `value` is no longer `old`.
void wait_for_change(const std::atomic<uint32_t>& value, uint32_t old) {
  const auto deadline = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 64; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

void Barrier::wait() {
  if (num_threads_ == 1) return;
  const uint32_t generation = generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) == num_threads_ - 1) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_release);
    generation_.notify_all();
  } else {
    wait_for_change(generation_, generation);
  }
}

ThreadPool::ThreadPool(int num_threads) : num_threads_(num_threads), barrier_(num_threads) {
  for (int thread = 1; thread < num_threads; ++thread) workers_.emplace_back([this, thread] { serve(thread); });
}

ThreadPool::~ThreadPool() {
  is_ending_ = true;
  task_.fetch_add(1, std::memory_order_release);
  task_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::serve(int thread) {
  for (uint32_t task = 0;;) {
    wait_for_change(task_, task);
    ++task;
    if (is_ending_) return;
    (*work_)(thread);
    barrier();
  }
}

void ThreadPool::run(const std::function<void(int)>& work) {
  work_ = &work;
  task_.fetch_add(1, std::memory_order_release);
  task_.notify_all();
  work(0);
  barrier();
}

void ThreadPool::for_each(int count, const std::function<void(int)>& work) {
  std::atomic<int> next{0};
  run([&](int) {
    for (int i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) work(i);
  });
}

}  // namespace kaiwa
