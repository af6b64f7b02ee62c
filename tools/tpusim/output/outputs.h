// Files that users name: those that a command reads, and those that it leaves behind.
//
// A user who waited for a simulation must not learn at its end that the report
// cannot be written, so every path is tried before the work starts. Files are
// written when everything else has succeeded, whole or not at all.
//
// The room answers how text and files leave the program; `CheckOutputs` is its entry point for
// files, console.h for lines.
#ifndef TPUSIM_TOOLS_TPUSIM_OUTPUT_OUTPUTS_H_
#define TPUSIM_TOOLS_TPUSIM_OUTPUT_OUTPUTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tpusim::tools {

// The whole file; of "-" stdin. Error: it cannot be read, with the reason.
absl::StatusOr<std::string> ReadText(const std::string& path);

struct OutputPath {
  std::string flag;  // "--trace", for messages
  std::string path;  // "" = not asked for, "-" = stdout
};

struct InputPath {
  std::string what;  // "workload", for messages
  std::string path;
};

// Returns the inputs of a run of one workload: the workload, and the configuration if it is a
// file.
std::vector<InputPath> InputsOf(const std::string& workload, const std::string& config);

// Error: a path that cannot be written, two outputs in one file, or an output
// that would replace one of `inputs`, by whatever names. Leaves nothing behind.
absl::Status CheckOutputs(const std::vector<OutputPath>& outputs,
                          const std::vector<InputPath>& inputs);

// Error: a folder that cannot be made, or is there and not empty. Leaves nothing behind.
absl::Status CheckOutputFolder(const std::string& flag, const std::string& path);

struct FolderFile {
  std::string name, bytes;
};

// Makes the folder with these files, whole or not at all; one that is there must be empty.
absl::Status WriteFolder(const std::string& flag, const std::string& path,
                         const std::vector<FolderFile>& files);

}  // namespace tpusim::tools

#endif  // TPUSIM_TOOLS_TPUSIM_OUTPUT_OUTPUTS_H_
