# cmake -DFOLDER=... -DSCRIPTS="a.js;b.js" -DLIBRARY=d3.min.js -DOUTPUT=x.cc -P embed_page.cmake
#
# Writes the definition of EmbeddedPageAssets() (sim/results/page/page.h). Files become arrays of bytes:
# a minified library is longer than a string literal may be.
function(as_array name hex)
  string(LENGTH "${hex}" digits)
  math(EXPR bytes "${digits} / 2")
  string(REGEX REPLACE "(..)" "0x\\1," array "${hex}")
  set(code "${code}constexpr unsigned char ${name}[] = {${array}0};
constexpr size_t ${name}Size = ${bytes};
" PARENT_SCOPE)
endfunction()

set(code "")
file(READ "${FOLDER}/page.html" hex HEX)
as_array(kPageSkeleton "${hex}")
file(READ "${FOLDER}/page.css" hex HEX)
as_array(kPageStyle "${hex}")
set(script "")
foreach(file IN LISTS SCRIPTS)
  file(READ "${FOLDER}/${file}" hex HEX)
  string(APPEND script "${hex}")
endforeach()
as_array(kPageScript "${script}")
file(READ "${LIBRARY}" hex HEX)
as_array(kPageLibrary "${hex}")
file(WRITE "${OUTPUT}" "// Generated from sim/results/page by embed_page.cmake.
#include <cstddef>

#include \"sim/results/page/page.h\"

namespace tpusim::results {
namespace {

${code}
std::string_view PageBytes(const unsigned char* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

PageAssets EmbeddedPageAssets() {
  return {PageBytes(kPageSkeleton, kPageSkeletonSize), PageBytes(kPageStyle, kPageStyleSize),
          PageBytes(kPageScript, kPageScriptSize), PageBytes(kPageLibrary, kPageLibrarySize)};
}

}  // namespace tpusim::results
")
