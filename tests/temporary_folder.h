// A folder of one test's own, however many run at once, in whatever processes and checkouts.
#ifndef TPUSIM_TESTS_TEMPORARY_FOLDER_H_
#define TPUSIM_TESTS_TEMPORARY_FOLDER_H_

#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace tpusim {

// Makes an empty folder below $TMPDIR, and removes it with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tpusim_test.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      std::perror(name.c_str());
      std::abort();
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace tpusim

#endif  // TPUSIM_TESTS_TEMPORARY_FOLDER_H_
