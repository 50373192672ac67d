// Memory that is taken page by page as it is first written, and can be given back in parts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kaiwa {

class AddressSpace {
 public:
  // Reserves addresses only; every byte reads as zero. Throws std::bad_alloc when even that fails.
  explicit AddressSpace(size_t bytes);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;

  static constexpr size_t page = 4096;
  static constexpr size_t whole_pages(size_t bytes) { return (bytes + page - 1) / page * page; }

  uint8_t* data() const { return data_; }
  // Gives whole pages back to the system; they are zero after.
  void forget(size_t begin, size_t bytes);

 private:
  size_t bytes_;
  uint8_t* data_;
};

}  // namespace kaiwa
