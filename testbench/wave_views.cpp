#include "testbench/wave_views.hpp"

#include <gtkwave/fstapi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rnic::testbench {
namespace {

/// A scope below rnic_top, and signals in it: names of streams (those with _valid, _ready, _hdr, _data and _last behind
/// them, whichever way they go), or of registers.
struct Place {
  std::string_view scope;
  std::initializer_list<std::string_view> names;
};
struct Stage {
  std::string_view title;
  std::initializer_list<Place> places;
};

/// The way of a request: 1 to 4 and 8 at its requester, 5 to 7 at the peer, and 4 to 5 again for the answer.
const Stage kStages[] = {
    {"clock and reset", {{"", {"clk_i", "rst_ni"}}}},
    {"1 posting: doorbell, WQE", {{"", {"host_req", "uar_req", "sq_db", "wqe_push"}}}},
    {"2 send queue: turn, WQE, packets",
     {{"u_send_side.u_send_queue.u_doorbell", {"state_q"}},
      {"u_send_side.u_send_queue.u_turns.u_fetch", {"state_q"}},
      {"u_send_side.u_send_queue.u_turns.u_engine.u_issue", {"state_q"}},
      {"u_send_side.u_send_queue", {"rd_req", "rd_rsp", "desc", "piece", "inflight"}}}},
    {"3 payload: translation, DMA read",
     {{"u_send_side.u_tx_path", {"xlate_req", "xlate_rsp", "rd_req", "rd_rsp"}}, {"", {"dma_req", "dma_cpl"}}}},
    {"4 packet: header, ICRC, wire", {{"u_send_side.u_tx_path", {"head", "frame", "packet", "left", "eth_tx"}}}},
    {"5 arrival: frame, checks",
     {{"u_receive_side.u_rx_entry.u_rx_front", {"eth_rx", "ip", "beat", "crc", "desc"}},
      {"u_receive_side.u_rx_engine.u_check", {"state_q"}}}},
    {"6 placement: translation, DMA write",
     {{"u_receive_side.u_rx_engine", {"plan", "xlate_req", "xlate_rsp", "wr"}},
      {"u_receive_side.u_rx_engine.u_place.u_walk", {"state_q"}}}},
    {"7 answer: responses, ACKs",
     {{"", {"rx_done", "rsp_cmd"}},
      {"u_send_side.u_responder_output", {"desc", "piece"}},
      {"u_send_side.u_responder_output.u_engine", {"state_q"}}}},
    {"8 completion: CQE, interrupt", {{"", {"sq_retire", "cpl_wr", "msix"}}}}};

struct Signal {
  std::string scope;  ///< Of the whole file
  std::string name;   ///< Without its range
  std::string range;  ///< "[7:0]", or empty
  std::uint32_t bits = 0;

  [[nodiscard]] std::string path() const { return scope + "." + name; }
};

using Reader = std::unique_ptr<void, void (*)(void*)>;

Reader open(const std::filesystem::path& fst) { return {fstReaderOpen(fst.c_str()), fstReaderClose}; }

std::vector<Signal> signals_of(void* reader) {
  std::vector<Signal> all;
  std::vector<std::string> scopes{""};
  while (const fstHier* item = fstReaderIterateHier(reader)) {
    if (item->htyp == FST_HT_SCOPE) {
      scopes.push_back((scopes.back().empty() ? "" : scopes.back() + ".") + item->u.scope.name);
    } else if (item->htyp == FST_HT_UPSCOPE) {
      scopes.pop_back();
    } else if (item->htyp == FST_HT_VAR) {
      const std::string_view text = item->u.var.name;
      const std::size_t range = text.find('[');
      const std::size_t end = text.find_first_of(" [");
      all.push_back({scopes.back(), std::string(text.substr(0, end)),
                     range == std::string_view::npos ? "" : std::string(text.substr(range)), item->u.var.length});
    }
  }
  return all;
}

/// `signal` is `name`, or belongs to the stream of that name.
bool belongs(std::string_view signal, std::string_view name) {
  if (signal == name) return true;
  if (!signal.starts_with(name)) return false;
  std::string_view rest = signal.substr(name.size());
  if (rest.ends_with("_i") || rest.ends_with("_o")) rest.remove_suffix(2);
  return rest == "_valid" || rest == "_ready" || rest == "_hdr" || rest == "_data" || rest == "_last";
}

std::vector<Signal> signals_of(const Stage& stage, const std::vector<Signal>& all, const std::string& top) {
  std::vector<Signal> found;
  for (const auto& place : stage.places) {
    const std::string scope = place.scope.empty() ? top : top + "." + std::string(place.scope);
    for (const auto name : place.names) {
      for (const auto& signal : all) {
        if (signal.scope == scope && belongs(signal.name, name)) found.push_back(signal);
      }
    }
  }
  return found;
}

/// The scope of rnic_top: "host0_nic.rnic_top".
std::string top_of(const std::vector<Signal>& all) {
  constexpr std::string_view kTop = "rnic_top";
  for (const auto& signal : all) {
    const std::size_t at = signal.scope.find(kTop);
    if (at != std::string::npos) return signal.scope.substr(0, at + kTop.size());
  }
  return std::string(kTop);
}

/// Save file of GTKWave: "@flags" hold for what follows (TR_RJUSTIFY with TR_BIN or TR_HEX; TR_BLANK with TR_GRP_BEGIN
/// or TR_GRP_END). The line with an asterisk: zoom, as minus log2 of picoseconds a pixel, and markers, none.
class Gtkwave {
 public:
  Gtkwave(const std::filesystem::path& fst, const std::string& top, void* reader)
      : out_(std::filesystem::path(fst).replace_extension("gtkw")) {
    const auto start = fstReaderGetStartTime(reader), end = fstReaderGetEndTime(reader);
    constexpr double kPixels = 1000;  // of the waves
    const double zoom = std::log2(std::max(1.0, static_cast<double>(end - start) / kPixels));
    out_ << "[dumpfile] " << std::filesystem::absolute(fst) << "\n[timestart] " << start
         << "\n[size] 1600 900\n[pos] -1 -1\n*" << -zoom << " -1";
    constexpr int kNamedMarkers = 26;
    for (int i = 0; i < kNamedMarkers; ++i) out_ << " -1";
    out_ << "\n[treeopen] " << top.substr(0, top.rfind('.')) << ".\n[treeopen] " << top << ".\n"
         << "[sst_width] 240\n[signals_width] 420\n[sst_expanded] 1\n";
  }
  void begin(std::string_view title) { out_ << "@800200\n-" << title << '\n'; }
  void add(const Signal& signal) {
    out_ << (signal.bits == 1 ? "@28\n" : "@22\n") << signal.path() << signal.range << '\n';
  }
  void end(std::string_view title) { out_ << "@1000200\n-" << title << '\n'; }

 private:
  std::ofstream out_;
};

/// Command file of Surfer: what one would type into its command prompt.
class Surfer {
 public:
  explicit Surfer(const std::filesystem::path& fst) : out_(std::filesystem::path(fst).replace_extension("sucl")) {}
  ~Surfer() { out_ << "zoom_fit\n"; }
  void begin(std::string_view title) { out_ << "divider_add " << title << '\n'; }
  void add(const Signal& signal) { out_ << "variable_add " << signal.path() << '\n'; }

 private:
  std::ofstream out_;
};

}  // namespace

std::size_t traced_signals(const std::filesystem::path& fst) {
  const Reader reader = open(fst);
  return reader ? static_cast<std::size_t>(fstReaderGetVarCount(reader.get())) : 0;
}

void write_wave_views(const std::filesystem::path& fst) {
  const Reader reader = open(fst);
  if (!reader) return;
  const auto all = signals_of(reader.get());
  const std::string top = top_of(all);
  Gtkwave gtkwave(fst, top, reader.get());
  Surfer surfer(fst);
  for (const auto& stage : kStages) {
    const auto signals = signals_of(stage, all, top);
    if (signals.empty()) continue;
    gtkwave.begin(stage.title);
    surfer.begin(stage.title);
    for (const auto& signal : signals) {
      gtkwave.add(signal);
      surfer.add(signal);
    }
    gtkwave.end(stage.title);
  }
}

}  // namespace rnic::testbench
