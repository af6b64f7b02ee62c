// Mutations of modules that the TPU compiler wrote, each as `tpusim run` takes it, simulated to its
// report.
//
//   mutate_compiled [--mutations N] [--from N] [--keep FOLDER] FILE_OR_FOLDER...
//
// What was compiled is run as it is: no pass makes it anew, so whatever a damaged module says of
// shapes, memory, order and grids reaches the lowering and the machine. A mutation may be refused
// with a reason, or run; an internal error, a crash, more than ten seconds or more than 2 GiB is a
// failure, whose module goes into FOLDER. Mutation number n is the same in every run.
#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "configs/number_text.h"
#include "configs/status_macros.h"
#include "mutate.h"
#include "tests/temporary_folder.h"
#include "tools/tpusim/command_line/program_flags.h"
#include "tools/tpusim/pipeline/pipeline.h"
#include "workloads/hlo/io/gzip.h"

namespace tpusim::fuzz {
namespace {

namespace fs = std::filesystem;

// Each mutation of a larger one takes longer than it teaches.
constexpr size_t kMaxBytes = 48'000;
constexpr unsigned kMostSeconds = 10;
constexpr rlim_t kMostMemory = rlim_t{2} << 30;

enum Ending { kRan = 0, kRefused = 1, kInternalError = 70, kOutOfMemory = 71 };

struct Seed {
  std::string name, bytes;
};

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<Seed> SeedsIn(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) files.emplace_back(path);
    if (!fs::is_directory(path)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.path().string().ends_with(".pb.gz")) files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  std::vector<Seed> seeds;
  for (const fs::path& file : files) {
    std::string bytes = ReadAll(file);
    if (hlo::IsGzip(bytes)) bytes = hlo::Gunzip(bytes, int64_t{1} << 30).value();
    if (bytes.size() > kMaxBytes && files.size() > 1) continue;
    seeds.push_back({file.parent_path().filename().string() + "-" + file.filename().string(),
                     std::move(bytes)});
  }
  return seeds;
}

// A number, a word or a list of a backend config: grids, windows, memory, aliases.
void MutateConfig(hlo::pb::HloModuleProto* module, Random* random) {
  std::vector<hlo::pb::HloInstructionProto*> with;
  for (auto& computation : *module->mutable_computations()) {
    for (auto& i : *computation.mutable_instructions()) {
      if (!i.backend_config().empty()) with.push_back(&i);
    }
  }
  if (with.empty()) return;
  std::string text = with[(*random)() % with.size()]->backend_config();
  std::vector<size_t> digits;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool begins = at == 0 || text[at - 1] < '0' || text[at - 1] > '9';
    if (begins && text[at] >= '0' && text[at] <= '9') digits.push_back(at);
  }
  auto* to = with[(*random)() % with.size()];
  if (digits.empty() || (*random)() % 4 == 0) {  // of another instruction, or a few bytes of it
    to->set_backend_config((*random)() % 2 == 0 ? text : MutateBytes(to->backend_config(), random));
    return;
  }
  static constexpr std::array<std::string_view, 9> kNumbers = {
      "0", "1", "2", "3", "-1", "1000", "4294967296", "9223372036854775807", "1e9"};
  const size_t at = digits[(*random)() % digits.size()];
  const size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
  text.replace(at, end - at, kNumbers[(*random)() % kNumbers.size()]);
  to->set_backend_config(text);
}

// Two neighbours of an order change places.
void MutateOrder(hlo::pb::HloModuleProto* module, Random* random) {
  auto& sequences = *module->mutable_schedule()->mutable_sequences();
  std::vector<int64_t> keys;
  for (const auto& [id, sequence] : sequences) {
    if (sequence.instruction_ids_size() > 1) keys.push_back(id);
  }
  std::ranges::sort(keys);
  if (keys.empty()) return;
  auto& ids = *sequences.at(keys[(*random)() % keys.size()]).mutable_instruction_ids();
  const int at = static_cast<int>((*random)() % static_cast<uint64_t>(ids.size() - 1));
  std::swap(ids[at], ids[at + 1]);
}

std::string Mutated(const std::string& bytes, Random* random) {
  const google::protobuf::LogSilencer silence;  // of names that are no UTF-8 any more
  const uint64_t kind = (*random)() % 8;
  if (kind < 2) return MutateMessage(bytes, random);
  if (kind < 5) return MutateProgram(bytes, random);
  std::optional<Input> input = ReadInput(bytes);
  if (!input) return bytes;
  const uint64_t count = 1 + (*random)() % 3;
  for (uint64_t n = 0; n < count; ++n) {
    kind == 5 ? MutateOrder(&input->module, random) : MutateConfig(&input->module, random);
  }
  return WriteInput(*std::move(input));
}

tools::ProgramFlags FlagsOf(int64_t n) {
  tools::ProgramFlags flags;
  flags.trip_counts = {"*=3"};
  flags.branches = {"*=longest"};
  flags.kernel_costs = {"*=1000,4096"};
  if (n % 4 == 3) flags.kernel_time = "compiler";
  flags.quiet = true;
  return flags;
}

Ending Run(const std::string& file, int64_t n, std::string& why) {
  const auto ending = [&why](const absl::Status& status) {
    why = Message(status);
    return absl::IsInternal(status) ? kInternalError : kRefused;
  };
  try {
    const tools::ProgramFlags flags = FlagsOf(n);
    const auto prepared = tools::Prepare(file, "", flags, tools::CompileOptionsOf(flags));
    if (!prepared.ok()) return ending(prepared.status());
    const auto simulated = tools::Simulate(*prepared, {});
    if (!simulated.ok()) return ending(simulated.status());
    why = results::ToJson(simulated->report).empty() ? "an empty report" : "";
    return why.empty() ? kRan : kInternalError;
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  } catch (const std::exception& error) {
    why = error.what();
    return kInternalError;
  }
}

// In a process of its own: SystemC elaborates once, and a crash is to be seen.
std::string FailureOf(const std::string& file, int64_t n, bool& ran) {
  std::array<int, 2> pipe{};
  TPUSIM_CHECK(::pipe(pipe.data()) == 0, "no pipe");
  const pid_t child = ::fork();
  TPUSIM_CHECK(child >= 0, "no process");
  if (child == 0) {
    [[maybe_unused]] const rlimit most{kMostMemory, kMostMemory};
    const rlimit none{0, 0};
#if !defined(__SANITIZE_ADDRESS__)  // which reserves all addresses that there are
    ::setrlimit(RLIMIT_AS, &most);
#endif
    ::setrlimit(RLIMIT_CORE, &none);
    ::alarm(kMostSeconds);
    ::dup2(pipe[1], STDERR_FILENO);
    std::string why;
    const Ending ending = Run(file, n, why);
    if (ending >= kInternalError) fmt::print(stderr, "{}", why);
    std::fflush(stderr);
    ::_exit(ending);
  }
  ::close(pipe[1]);
  std::string said;
  std::array<char, 4096> chunk{};
  for (ssize_t got = 0; (got = ::read(pipe[0], chunk.data(), chunk.size())) > 0;) {
    if (said.size() < 2000) said.append(chunk.data(), static_cast<size_t>(got));
  }
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  ran = WIFEXITED(status) && WEXITSTATUS(status) == kRan;
  if (WIFSIGNALED(status)) {
    return WTERMSIG(status) == SIGALRM ? fmt::format("more than {} s", kMostSeconds)
                                       : fmt::format("signal {}: {}", WTERMSIG(status), said);
  }
  switch (WEXITSTATUS(status)) {
    case kRan:
    case kRefused:
      return "";
    case kOutOfMemory:
      return "more than 2 GiB";
    default:
      return "internal error: " + said;
  }
}

int Main(std::vector<std::string> arguments) {
  int64_t mutations = 100, from = 0;
  std::string keep;
  while (arguments.size() >= 2 && arguments[0].starts_with("--")) {
    const std::string &flag = arguments[0], &value = arguments[1];
    if (flag == "--keep") keep = value;
    const auto number = configs::NumberIn<int64_t>(value);
    if (flag == "--mutations" && number) mutations = *number;
    if (flag == "--from" && number) from = *number;
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  const std::vector<Seed> seeds = SeedsIn(arguments);
  if (seeds.empty()) {
    fmt::print(stderr,
               "usage: mutate_compiled [--mutations N] [--from N] [--keep FOLDER] PATH...\n");
    return 2;
  }
  const TemporaryFolder temporary;
  const fs::path folder = keep.empty() ? temporary.path() : fs::path(keep);
  const fs::path file = temporary.path() / "mutated.pb";
  int64_t ran = 0, failed = 0;
  for (int64_t n = from; n < from + mutations; ++n) {
    const Seed& seed = seeds[static_cast<size_t>(n) % seeds.size()];
    Random random(static_cast<uint64_t>(n));
    std::ofstream(file, std::ios::binary) << Mutated(seed.bytes, &random);
    bool has_run = false;
    const std::string failure = FailureOf(file.string(), n, has_run);
    ran += has_run ? 1 : 0;
    if (failure.empty()) continue;
    ++failed;
    fmt::print("mutation {} of {}: {}\n", n, seed.name, failure);
    std::fflush(stdout);
    if (!keep.empty()) fs::copy_file(file, folder / fmt::format("mutation-{}.pb", n));
  }
  fmt::print("{} mutations of {} modules: {} ran, {} failed\n", mutations, seeds.size(), ran,
             failed);
  // Something must get past the checks, something must not.
  return failed == 0 && ran > 0 && ran < mutations ? 0 : 1;
}

}  // namespace
}  // namespace tpusim::fuzz

int main(int argc, char** argv) {
  return tpusim::fuzz::Main(std::vector<std::string>(argv + 1, argv + argc));
}
