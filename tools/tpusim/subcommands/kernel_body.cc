#include "tools/tpusim/subcommands/kernel_body.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "configs/printable.h"
#include "configs/status_macros.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/output/console.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/kernels/opaque/body_cost.h"
#include "workloads/kernels/opaque/custom_cost.h"

namespace tpusim::tools {
namespace {

using Json = nlohmann::ordered_json;
using kernels::BodyPrice;

template <typename Products>
Json ProductsJson(const Products& products) {
  Json list = Json::array();
  for (const tpusim::KernelProduct& product : products) {
    list.push_back({{"m", product.m()},
                    {"k", product.k()},
                    {"n", product.n()},
                    {"format", product.number_format()},
                    {"count", product.count()}});
  }
  return list;
}

Json WorkJson(const tpusim::KernelCost& cost) {
  Json stages = Json::array(), loops = Json::array();
  for (const tpusim::KernelStage& stage : cost.stages()) {
    stages.push_back({{"flops", stage.flops()},
                      {"transcendentals", stage.transcendentals()},
                      {"spilled_bytes", stage.spilled_bytes()},
                      {"valu", stage.valu()},
                      {"eup", stage.eup()},
                      {"xlu", stage.xlu()},
                      {"products", ProductsJson(stage.products())}});
  }
  for (const tpusim::KernelLoop& loop : cost.loops()) {
    loops.push_back({{"name", loop.name()},
                     {"source", loop.source()},
                     {"at_most", loop.has_at_most() ? Json(loop.at_most()) : Json()},
                     {"pass", WorkJson(loop.pass())}});
  }
  return Json{{"flops", cost.flops()},
              {"transcendentals", cost.transcendentals()},
              {"bytes", cost.bytes_accessed()},
              {"remote_bytes", cost.remote_bytes()},
              {"products", ProductsJson(cost.products())},
              {"stages", std::move(stages)},
              {"loops", std::move(loops)}};
}

Json JsonOf(const BodyPrice& body) {
  const tpusim::KernelCost& cost = body.price.ok() ? *body.price : tpusim::KernelCost();
  Json blocks = Json::array();
  for (const tpusim::KernelBlock& block : cost.blocks()) {
    blocks.push_back(
        {{"kind", block.output() ? "out" : "in"},
         {"bytes", block.bytes()},
         {"moves_with", std::vector(block.moves_with().begin(), block.moves_with().end())}});
  }
  Json json{{"name", body.call->name()},
            {"unpriced", body.price.ok() ? "" : Message(body.price.status())}};
  json.update(WorkJson(cost));
  json.update(
      Json{{"grid", std::vector(cost.grid().begin(), cost.grid().end())},
           {"blocks", std::move(blocks)},
           {"assumed", std::vector<std::string>(cost.assumed().begin(), cost.assumed().end())}});
  return json;
}

// Lines of amounts, those of loops further to the right.
void AddWork(const tpusim::KernelCost& cost, const std::string& indent, std::string& text) {
  text +=
      fmt::format("{}{} FLOPs, {} transcendentals, {} bytes of HBM, {} to other devices\n", indent,
                  cost.flops(), cost.transcendentals(), cost.bytes_accessed(), cost.remote_bytes());
  for (const tpusim::KernelProduct& product : cost.products()) {
    text += fmt::format("{}{} products {} x {} x {} of {}\n", indent, product.count(), product.m(),
                        product.k(), product.n(), product.number_format());
  }
  for (const tpusim::KernelLoop& loop : cost.loops()) {
    text += fmt::format(
        "{}each pass of {}{}{}\n", indent, loop.name(),
        loop.source().empty() ? "" : ", " + loop.source(),
        loop.has_at_most() ? fmt::format(", at most {} each time", loop.at_most()) : std::string());
    AddWork(loop.pass(), indent + "  ", text);
  }
}

std::string TextOf(const BodyPrice& body) {
  std::string text = body.call->name() + "\n";
  if (!body.price.ok()) return text + fmt::format("  {}\n", Message(body.price.status()));
  const tpusim::KernelCost& cost = *body.price;
  AddWork(cost, "  ", text);
  if (cost.grid_size() > 0) {
    text += fmt::format("  grid {}\n", fmt::join(cost.grid(), " x "));
    for (const tpusim::KernelBlock& block : cost.blocks()) {
      text += fmt::format(
          "  {:<4}{:>9} bytes, moves with axes {}\n", block.output() ? "out" : "in", block.bytes(),
          block.moves_with().empty() ? "-" : fmt::format("{}", fmt::join(block.moves_with(), ",")));
    }
  }
  for (const std::string& sentence : cost.assumed()) text += fmt::format("  it {}\n", sentence);
  return text;
}

}  // namespace

absl::Status PrintKernelBodies(const std::string& workload, const std::string& config,
                               const std::string& name, const ProgramFlags& flags, bool json) {
  ASSIGN_OR_RETURN(const Source source, SourceOf(workload));
  compiler::Session session;
  ASSIGN_OR_RETURN(const Prepared prepared,
                   Prepare(source, config, flags, CompileOptionsOf(flags), session,
                           Until(compiler::Stage::kPartitioned)));
  std::string text;
  std::vector<std::string> names;
  Json list = Json::array();
  for (const BodyPrice& body : kernels::BodyPrices(*prepared.compiled.module,
                                                   prepared.compiled.workload.num_partitions(),
                                                   target::Target(prepared.config))) {
    names.push_back(body.call->name());
    if (!kernels::IsNamed(*body.call, name)) continue;
    if (!text.empty()) text += "\n";
    text += TextOf(body);
    list.push_back(JsonOf(body));
  }
  if (list.empty()) {
    return UserError(names.empty() ? "the program has no Pallas kernels"
                                   : fmt::format("the program has no Pallas kernel '{}'; it has {}",
                                                 name, fmt::join(names, ", ")));
  }
  if (!json) return PrintResult(configs::PrintableLines(text));
  Json all = results::HeadOf("tpusim.kernel_body/1", ThisProducer());
  all.update(Json{
      {"workload", prepared.name}, {"config", prepared.config.name}, {"kernels", std::move(list)}});
  return PrintResult(results::JsonText(all));
}

}  // namespace tpusim::tools
