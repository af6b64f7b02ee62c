// The steps on HLO by themselves, on generated modules: import, verify, print,
// write, cost, inline. `us_per_instruction` is the figure to look at: it must not
// grow with the size.
//
//   build/hlo_benchmark [--benchmark_filter=Import]
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>

#include "configs/status_macros.h"
#include "tests/workloads/hlo/big_module.h"
#include "workloads/hlo/analysis/verify.h"
#include "workloads/hlo/io/import.h"
#include "workloads/hlo/io/printer.h"
#include "workloads/hlo/io/wire.h"
#include "workloads/hlo/rules/cost.h"

namespace {

using tpusim::hlo::Layers;
using tpusim::hlo::Module;
using tpusim::hlo::NestedCalls;

void Report(benchmark::State& state, const Module& module) {
  int64_t instructions = 0;
  for (const auto* computation : module.computations()) {
    instructions += static_cast<int64_t>(computation->size());
  }
  state.counters["instructions"] = static_cast<double>(instructions);
  // The inverse of a rate is seconds; a millionth of the instructions makes it us.
  state.counters["us_per_instruction"] = benchmark::Counter(
      static_cast<double>(instructions) * 1e-6,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void Import(benchmark::State& state) {
  const auto module = Layers(state.range(0));
  const std::string bytes = tpusim::hlo::ToProto(*module).SerializeAsString();
  for (auto _ : state) {
    const auto imported = tpusim::hlo::Import(bytes, "layers.pb");
    TPUSIM_CHECK(imported.ok(), tpusim::Message(imported.status()));
  }
  Report(state, *module);
}

void Verify(benchmark::State& state) {
  const auto module = Layers(state.range(0));
  for (auto _ : state) TPUSIM_CHECK(tpusim::hlo::Verify(*module).ok(), "invalid");
  Report(state, *module);
}

void Print(benchmark::State& state) {
  const auto module = Layers(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(tpusim::hlo::ToString(*module));
  Report(state, *module);
}

void Write(benchmark::State& state) {
  const auto module = Layers(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(tpusim::hlo::ToProto(*module));
  Report(state, *module);
}

void Cost(benchmark::State& state) {
  const auto module = Layers(state.range(0));
  for (auto _ : state) TPUSIM_CHECK(tpusim::hlo::CostOf(*module->entry()).ok(), "no cost");
  Report(state, *module);
}

void InlineAll(benchmark::State& state, std::unique_ptr<Module> (*make)(int64_t)) {
  const auto module = make(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    std::unique_ptr<Module> copy = module->Clone();
    state.ResumeTiming();
    copy->InlineCalls([](const tpusim::hlo::Instruction&) { return true; });
    state.PauseTiming();
    copy.reset();
    state.ResumeTiming();
  }
  Report(state, *module);
}

void Inline(benchmark::State& state) { InlineAll(state, Layers); }
void InlineDeep(benchmark::State& state) { InlineAll(state, NestedCalls); }

void Sizes(benchmark::internal::Benchmark* b) {
  b->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);
}

BENCHMARK(Import)->Apply(Sizes);
BENCHMARK(Verify)->Apply(Sizes);
BENCHMARK(Print)->Apply(Sizes);
BENCHMARK(Write)->Apply(Sizes);
BENCHMARK(Cost)->Apply(Sizes);
BENCHMARK(Inline)->Apply(Sizes);
BENCHMARK(InlineDeep)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
