#include "testbench/wave_views.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "testbench/fst_file.hpp"
#include "testbench/gtkwave_view.hpp"

namespace rnic::testbench {
namespace {

/// A register, or a stream (signals with _valid, _ready, _hdr, _data and _last behind the name, whichever way they go).
struct Shown {
  std::string_view name;
  std::string_view fields = {};  ///< Of a stream that is shown by its fields: its struct (rtl/streams.toml)
};
/// A scope below rnic_top, and what is shown of it.
struct Place {
  std::string_view scope;
  std::initializer_list<Shown> shown;
};
struct Stage {
  std::string_view title;
  std::initializer_list<Place> places;
};

/// The way of a request: 1 to 4 and 8 at its requester, 5 to 7 at the peer, and 4 to 5 again for the answer.
const Stage kStages[] = {
    {"clock and reset", {{"", {{"clk_i"}, {"rst_ni"}}}}},
    {"1 posting: doorbell, WQE",
     {{"", {{"host_req", "host_req_hdr"}, {"uar_req", "uar_req"}, {"sq_db", "doorbell"}, {"wqe_push", "wqe_push"}}}}},
    {"2 send queue: turn, WQE, packets",
     {{"u_send_side.u_send_queue.u_doorbell", {{"state_q"}}},
      {"u_send_side.u_send_queue.u_turns.u_fetch", {{"state_q"}}},
      {"u_send_side.u_send_queue.u_turns.u_engine.u_issue", {{"state_q"}}},
      {"u_send_side.u_send_queue",
       {{"rd_req", "dma_rd_req"}, {"rd_rsp"}, {"desc", "tx_desc"}, {"piece", "sg_piece"}, {"inflight", "inflight"}}}}},
    {"3 payload: translation, DMA read",
     {{"u_send_side.u_tx_path",
       {{"xlate_req", "xlate_req"}, {"xlate_rsp", "xlate_rsp"}, {"rd_req", "dma_rd_req"}, {"rd_rsp"}}},
      {"", {{"dma_req", "dma_req_hdr"}, {"dma_cpl", "dma_cpl_hdr"}}}}},
    {"4 packet: header, ICRC, wire",
     {{"u_send_side.u_tx_path", {{"head"}, {"frame"}, {"packet"}, {"left", "timer_event"}, {"eth_tx"}}}}},
    {"5 arrival: frame, checks",
     {{"u_receive_side.u_rx_entry.u_rx_front", {{"eth_rx"}, {"ip"}, {"beat"}, {"crc"}, {"desc", "rx_desc"}}},
      {"u_receive_side.u_rx_engine.u_check", {{"state_q"}}}}},
    {"6 placement: translation, DMA write",
     {{"u_receive_side.u_rx_engine",
       {{"plan", "rx_plan"}, {"xlate_req", "xlate_req"}, {"xlate_rsp", "xlate_rsp"}, {"wr", "dma_wr"}}},
      {"u_receive_side.u_rx_engine.u_place.u_walk", {{"state_q"}}}}},
    {"7 answer: responses, ACKs",
     {{"", {{"rx_done", "rx_done"}, {"rsp_cmd", "rsp_cmd"}}},
      {"u_send_side.u_responder_output", {{"desc", "tx_desc"}, {"piece", "sg_piece"}}},
      {"u_send_side.u_responder_output.u_engine", {{"state_q"}}}}},
    {"8 completion: CQE, interrupt", {{"", {{"sq_retire", "retire_cmd"}, {"cpl_wr"}, {"msix"}}}}}};

/// `signal` is `name`, or belongs to the stream of that name.
bool belongs(std::string_view signal, std::string_view name) {
  if (signal == name) return true;
  if (!signal.starts_with(name)) return false;
  std::string_view rest = signal.substr(name.size());
  if (rest.ends_with("_i") || rest.ends_with("_o")) rest.remove_suffix(2);
  return rest == "_valid" || rest == "_ready" || rest == "_hdr" || rest == "_data" || rest == "_last";
}

struct Row {
  const FstSignal* signal;
  const rtl::StreamFields* fields;  ///< Of what it carries, or null
};

const rtl::StreamFields* fields_of(const FstSignal& signal, std::string_view stream) {
  const auto* const it = std::find_if(rtl::kStreamFields.begin(), rtl::kStreamFields.end(),
                                      [&](const auto& one) { return one.name == stream && one.bits == signal.bits; });
  return it == rtl::kStreamFields.end() ? nullptr : it;
}

std::vector<Row> rows_of(const Stage& stage, const FstFile& file, const std::string& top) {
  std::vector<Row> found;
  for (const auto& place : stage.places) {
    const std::string scope = place.scope.empty() ? top : top + "." + std::string(place.scope);
    for (const auto& [name, stream] : place.shown) {
      for (const auto& signal : file.signals) {
        if (signal.scope == scope && belongs(signal.name, name)) found.push_back({&signal, fields_of(signal, stream)});
      }
    }
  }
  return found;
}

/// The scope of rnic_top: "host0_nic.rnic_top".
std::string top_of(const FstFile& file) {
  constexpr std::string_view kTop = "rnic_top";
  for (const auto& signal : file.signals) {
    const std::size_t at = signal.scope.find(kTop);
    if (at != std::string::npos) return signal.scope.substr(0, at + kTop.size());
  }
  return std::string(kTop);
}

/// Command file of Surfer: what one would type into its command prompt. Surfer takes names of values from the FST file.
class SurferView {
 public:
  explicit SurferView(const std::filesystem::path& fst) : out_(std::filesystem::path(fst).replace_extension("sucl")) {}
  /// A title is one word for Surfer.
  void begin(std::string_view title) {
    std::string word;
    for (const char c : title) {
      const bool letter = std::isalnum(static_cast<unsigned char>(c)) != 0;
      if (letter || (!word.empty() && word.back() != '_')) word += letter ? c : '_';
    }
    out_ << "divider_add " << word << '\n';
  }
  void add(const FstSignal& signal) { out_ << "variable_add " << signal.path() << '\n'; }
  /// The whole file, then magnified by two until `span_ps` of `whole_ps` are shown, around the mark.
  void show(double whole_ps, double span_ps, std::uint64_t mark_ps) {
    out_ << "zoom_fit\n";
    for (double shown = whole_ps; shown > 2 * span_ps; shown /= 2) out_ << "zoom_in\n";
    out_ << "cursor_set " << mark_ps << "\ngoto_cursor\n";
  }

 private:
  std::ofstream out_;
};

/// What is shown around the mark: more behind the first request, and in front of a failure.
constexpr std::uint64_t kShortPs = 200'000, kLongPs = 1'800'000;

}  // namespace

std::size_t traced_signals(const std::filesystem::path& fst) { return FstFile::read(fst).signals.size(); }

void write_wave_views(const std::filesystem::path& fst, const WaveMark& mark) {
  const FstFile file = FstFile::read(fst);
  if (file.signals.empty()) return;
  const std::string top = top_of(file);
  const std::uint64_t at = std::clamp(mark.at_ps, file.start_ps, file.end_ps);
  const std::uint64_t before = mark.is_end ? kLongPs : kShortPs, behind = mark.is_end ? kShortPs : kLongPs;
  const std::uint64_t from = std::max(file.start_ps, at - std::min(at, before)),
                      to = std::min(file.end_ps, at + behind);
  GtkwaveView gtkwave(fst, top, from, to, at);
  SurferView surfer(fst);
  for (const auto& stage : kStages) {
    const auto rows = rows_of(stage, file, top);
    if (rows.empty()) continue;
    gtkwave.begin(stage.title);
    surfer.begin(stage.title);
    for (const auto& [signal, fields] : rows) {
      gtkwave.add(*signal);
      if (fields != nullptr) gtkwave.add_fields(*signal, *fields);
      surfer.add(*signal);
    }
    gtkwave.end(stage.title);
  }
  surfer.show(static_cast<double>(file.end_ps - file.start_ps), static_cast<double>(to - from), at);
}

}  // namespace rnic::testbench
