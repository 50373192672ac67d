// Threads that run one function together, and sleep when there is none.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace kaiwa {

// A point that no thread passes before all have reached it. Threads spin for some microseconds, then sleep.
class Barrier {
 public:
  explicit Barrier(int num_threads) : num_threads_(num_threads) {}
  void wait();

 private:
  const int num_threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};
};

// The thread that calls `run` is one of the pool's threads; only one may call at a time.
class ThreadPool {
 public:
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }
  // Runs `work(thread)` on every thread and returns when all are done. `work` must not throw.
  void run(const std::function<void(int)>& work);
  // Runs `work(i)` for 0 <= i < count, in any order.
  void for_each(int count, const std::function<void(int)>& work);
  // For use inside of `run`, by all threads.
  void barrier() { barrier_.wait(); }

 private:
  void serve(int thread);

  const int num_threads_;
  Barrier barrier_;
  std::vector<std::thread> workers_;
  const std::function<void(int)>* work_ = nullptr;
  alignas(64) std::atomic<uint32_t> task_{0};
  bool is_ending_ = false;
};

}  // namespace kaiwa
