#include "testbench/fst_file.hpp"

#include <gtkwave/fstapi.h>

#include <memory>
#include <string_view>
#include <utility>

namespace rnic::testbench {
FstFile FstFile::read(const std::filesystem::path& path) {
  FstFile file;
  const std::unique_ptr<void, void (*)(void*)> reader(fstReaderOpen(path.c_str()), fstReaderClose);
  if (!reader) return file;
  file.start_ps = fstReaderGetStartTime(reader.get());
  file.end_ps = fstReaderGetEndTime(reader.get());
  std::vector<std::string> scopes{""};
  bool has_names = false;  // of the next signal
  while (const fstHier* item = fstReaderIterateHier(reader.get())) {
    if (item->htyp == FST_HT_SCOPE) {
      scopes.push_back((scopes.back().empty() ? "" : scopes.back() + ".") + item->u.scope.name);
    } else if (item->htyp == FST_HT_UPSCOPE) {
      scopes.pop_back();
    } else if (item->htyp == FST_HT_ATTRBEGIN) {
      // With a text it is the table itself, else the next signal uses one.
      if (item->u.attr.typ == FST_AT_MISC && item->u.attr.subtype == FST_MT_ENUMTABLE)
        has_names = item->u.attr.name_length == 0;
    } else if (item->htyp == FST_HT_VAR) {
      const std::string_view text = item->u.var.name;
      const std::size_t range = text.find('[');
      const std::size_t end = text.find_first_of(" [");
      file.signals.push_back({scopes.back(), std::string(text.substr(0, end)),
                              range == std::string_view::npos ? "" : std::string(text.substr(range)),
                              item->u.var.length, std::exchange(has_names, false)});
    }
  }
  return file;
}

}  // namespace rnic::testbench
