#include "common/model/files/testing/byte_edits.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

void CutAt(Random& random, std::vector<uint8_t>& bytes) {
  // Often early, where fields are dense.
  size_t most =
      OneIn(random, 2) ? std::min<size_t>(bytes.size(), 64) : bytes.size();
  bytes.resize(random.Below(most + 1));
}

template <typename T>
void Overwrite(Random& random, std::vector<uint8_t>& bytes) {
  if (bytes.size() < sizeof(T)) return;
  size_t at = random.Below(bytes.size() - sizeof(T) + 1);
  T number = static_cast<T>(EdgeNumber(random));
  std::memcpy(bytes.data() + at, &number, sizeof(T));
}

}  // namespace

uint64_t EdgeNumber(Random& random) {
  switch (random.Below(4)) {
    case 0:
      return random.Below(4);
    case 1:
      return random.Next();
    default: {
      uint64_t power = uint64_t{1} << random.Below(64);
      return power - 1 + random.Below(3);
    }
  }
}

void EditBytes(Random& random, std::vector<uint8_t>& bytes) {
  if (bytes.empty()) return;
  switch (random.Below(7)) {
    case 0:
      return CutAt(random, bytes);
    case 1:
      Pick(random, bytes) ^= uint8_t{1} << random.Below(8);
      return;
    case 2:
      Pick(random, bytes) = static_cast<uint8_t>(random.Next());
      return;
    case 3:
      return Overwrite<uint32_t>(random, bytes);
    case 4:
      return Overwrite<uint64_t>(random, bytes);
    case 5: {  // a run moved over another
      size_t length = 1 + random.Below(std::min<size_t>(bytes.size(), 256));
      size_t from = random.Below(bytes.size() - length + 1);
      size_t to = random.Below(bytes.size() - length + 1);
      std::vector<uint8_t> run(bytes.begin() + from,
                               bytes.begin() + from + length);
      std::copy(run.begin(), run.end(), bytes.begin() + to);
      return;
    }
    default: {  // everything behind it shifts
      size_t at = random.Below(bytes.size());
      if (OneIn(random, 2)) {
        bytes.erase(bytes.begin() + at);
      } else {
        bytes.insert(bytes.begin() + at, static_cast<uint8_t>(random.Next()));
      }
    }
  }
}

}  // namespace penstock
