# cmake -DFILES="a.json;b.json" -DOUTPUT=x.cc -P embed_chips.cmake
#
# Writes the definition of EmbeddedChips() (embedded_chips.h): file name without
# extension, and the text, in the order of names.
list(SORT FILES)
set(entries "")
foreach(file IN LISTS FILES)
  get_filename_component(name "${file}" NAME_WE)
  # Not read through a list: brackets and semicolons of JSON are special there.
  file(READ "${file}" text)
  string(APPEND entries "    {\"${name}\", R\"tpusim_json(${text})tpusim_json\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Generated from configs/chips by embed_chips.cmake.
#include \"configs/embedded_chips.h\"

namespace tpusim::configs {

const std::vector<EmbeddedChip>& EmbeddedChips() {
  static const auto* chips = new std::vector<EmbeddedChip>{
${entries}  };
  return *chips;
}

}  // namespace tpusim::configs
")
