#include "bench/kernel_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "backend/cuda/device.hpp"
#include "base/error.hpp"
#include "base/json.hpp"

namespace thalweg::bench {
namespace {

constexpr double hbm_bytes_a_us = 4580e3;  // read rate of an H200
constexpr double bf16_flops_a_us = 884e6;  // bf16 matrix rate, sustained
constexpr double long_enough_us = 3000;    // of one replay
constexpr double warm_up_us = 10000;       // the clock settles after the idle time of preparing a case
constexpr int replays = 5;

class Stream {
 public:
  Stream() { cuda::check(cudaStreamCreate(&stream_), "create a stream"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { cuda::check(cudaEventCreate(&event_), "create an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// The launches of all copies, `rounds` times over, as one graph.
class Graph {
 public:
  Graph(const std::vector<KernelCase::Launcher>& launchers, int rounds, const Stream& stream) {
    cudaGraph_t graph = nullptr;
    cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin a graph");
    for (int round = 0; round < rounds; ++round) {
      for (const auto& launch : launchers) launch(stream);
    }
    cuda::check(cudaStreamEndCapture(stream, &graph), "end a graph");
    cuda::check(cudaGraphInstantiate(&graph_, graph, 0), "make a graph");
    cudaGraphDestroy(graph);
  }
  ~Graph() { cudaGraphExecDestroy(graph_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Microseconds of one replay.
  double replay(const Stream& stream) const {
    const Event begin;
    const Event end;
    cuda::check(cudaEventRecord(begin, stream), "record an event");
    cuda::check(cudaGraphLaunch(graph_, stream), "launch a graph");
    cuda::check(cudaEventRecord(end, stream), "record an event");
    cuda::check(cudaStreamSynchronize(stream), "run a graph");
    float milliseconds = 0;
    cuda::check(cudaEventElapsedTime(&milliseconds, begin, end), "read an event");
    return 1000.0 * milliseconds;
  }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

double measure(const KernelCase& kernel_case) {
  const std::vector<KernelCase::Launcher> launchers = kernel_case.prepare();
  const Stream stream;
  for (const auto& launch : launchers) launch(stream);
  cuda::check(cudaStreamSynchronize(stream), "warm up");
  const auto count = static_cast<double>(launchers.size());
  const double once = Graph(launchers, 1, stream).replay(stream);
  const int rounds = std::clamp(static_cast<int>(long_enough_us / once), 1, 400);
  const Graph graph(launchers, rounds, stream);
  for (double spent = 0; spent < warm_up_us;) spent += graph.replay(stream);
  std::vector<double> times;
  for (int i = 0; i < replays; ++i) times.push_back(graph.replay(stream) / (count * rounds));
  std::sort(times.begin(), times.end());
  return times[replays / 2];
}

double rounded(double value, double scale) {
  return std::round(value * scale) / scale;
}

Json line_of(const KernelCase& kernel_case, double us) {
  const double roofline =
      std::max(kernel_case.work.bytes / hbm_bytes_a_us, kernel_case.work.flops / bf16_flops_a_us);
  Json line{{"sec", kernel_case.section},
            {"op", kernel_case.op},
            {"impl", "ours_exact"},
            {"us", rounded(us, 100)},
            {kernel_case.size_name, kernel_case.size},
            {"bytes", kernel_case.work.bytes},
            {"flops", kernel_case.work.flops},
            {"roofline_us", rounded(roofline, 100)},
            {"share", rounded(roofline / us, 1000)}};
  const PeerFigures peers = peer_figures(kernel_case);
  if (peers.any > 0) line["peer_any_us"] = peers.any;
  if (peers.exact > 0) line["peer_exact_us"] = peers.exact;
  if (peers.any > 0) line["ratio_any"] = rounded(us / peers.any, 1000);
  return line;
}

}  // namespace

void run_kernel_bench(const KernelBenchOptions& options) {
  const char* reason = "";
  if (!cuda::device_usable(&reason))
    throw WorkError(fmt::format("bench kernels: no usable CUDA device: {}", reason));
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(nullptr, std::fclose);
  if (!options.out_file.empty()) {
    file.reset(std::fopen(options.out_file.c_str(), "w"));
    if (!file) throw WorkError(fmt::format("{}: cannot be written", options.out_file));
  }
  const auto print = [&](const Json& line) {
    const std::string text = to_text(line) + "\n";
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    if (file) std::fputs(text.c_str(), file.get());
  };
  print({{"sec", "device"}, {"op", cuda::device_name()}});
  for (const auto& cases : {dense_cases(), moe_cases(), attention_cases(), index_cases(), selection_cases(),
                            mix_cases(), routing_cases()}) {
    for (const KernelCase& kernel_case : cases) {
      const std::string name = fmt::format("{}/{}/{}", kernel_case.section, kernel_case.op, kernel_case.size);
      if (name.find(options.filter) == std::string::npos) continue;
      print(line_of(kernel_case, measure(kernel_case)));
    }
  }
}

}  // namespace thalweg::bench
