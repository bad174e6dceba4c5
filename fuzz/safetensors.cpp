// Safetensors files: any bytes are either refused or tensors that cover the data exactly.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/error.hpp"
#include "checkpoint/safetensors.hpp"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thalweg::checkpoint;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  try {
    const SafetensorsContent content = parse_safetensors(file, "file");
    const std::byte* end = nullptr;
    for (const StoredTensor& tensor : content.tensors) {
      expect(end == nullptr || tensor.bytes.data() == end);
      std::int64_t bytes = dtype_size(tensor.dtype);
      for (const std::int64_t n : tensor.shape) bytes *= n;
      expect(bytes == static_cast<std::int64_t>(tensor.bytes.size()));
      end = tensor.bytes.data() + tensor.bytes.size();
    }
    expect(content.tensors.empty() || end == file.data() + file.size());
  } catch (const thalweg::InputError&) {
  }
  return 0;
}
