// The state table of a connection against what the state diagrams of the InfiniBand specification say (volume 1, 12.9),
// every state with every input, and against the page that shows it.
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "driver/cm/state_table.hpp"

using namespace rnic::cm;

namespace {

const std::vector<std::string> kStateNames{
    "Idle",     "REQ Sent",      "MRA(REQ) Rcvd", "REP Rcvd",  "MRA(REP) Sent", "REQ Rcvd",      "MRA(REQ) Sent",
    "REP Sent", "MRA(REP) Rcvd", "Established",   "DREQ Sent", "TimeWait",      "SIDR REQ Sent", "SIDR REQ Rcvd"};
const std::vector<std::string> kInputNames{"REQ",
                                           "MRA(REQ)",
                                           "MRA(REP)",
                                           "REJ",
                                           "REP",
                                           "RTU",
                                           "DREQ",
                                           "DREP",
                                           "LAP",
                                           "SIDR REQ",
                                           "SIDR REP",
                                           "SIDR REP refused",
                                           "time-out",
                                           "retries over",
                                           "TimeWait over",
                                           "connect",
                                           "ask",
                                           "accept",
                                           "reject",
                                           "ready",
                                           "disconnect",
                                           "destroy",
                                           "communication established"};

// Where each input leads; a dot: nowhere, it has no meaning there. Columns as kInputNames, rows as kStateNames.
constexpr const char* kMatrix =
    //  REQ  MRQ  MRP  REJ  REP  RTU  DREQ DREP LAP  SQ   SR   SX   t/o  over tw   con  ask  acc  rej  rdy  dis  des est
    "I  .    .    .    .    .    .    .    .    .    .    .    .    .    .    .    RQS  SQS  .    .    .    .    I    "
    ".\n"
    "RQS .   MQR  .    I    RPR  .    .    .    .    .    .    .    RQS  I    .    .    .    .    .    .    .    TW   "
    ".\n"
    "MQR .   MQR  .    I    RPR  .    .    .    .    .    .    .    RQS  I    .    .    .    .    .    .    .    TW   "
    ".\n"
    "RPR .   .    .    TW   MPS  .    .    .    .    .    .    .    .    .    .    .    .    .    TW   EST  .    TW   "
    ".\n"
    "MPS .   .    .    TW   MPS  .    .    .    .    .    .    .    .    .    .    .    .    .    TW   EST  .    TW   "
    ".\n"
    "RQR MQS .    .    I    .    .    .    .    .    .    .    .    .    .    .    .    .    RPS  TW   .    .    TW   "
    ".\n"
    "MQS MQS .    .    I    .    .    .    .    .    .    .    .    .    .    .    .    .    RPS  TW   .    .    TW   "
    ".\n"
    "RPS RPS .    MPR  TW   .    EST  TW   .    .    .    .    .    RPS  TW   .    .    .    .    TW   .    .    TW   "
    "EST\n"
    "MPR MPR .    MPR  TW   .    EST  TW   .    .    .    .    .    RPS  TW   .    .    .    .    TW   .    .    TW   "
    "EST\n"
    "EST .   .    .    TW   EST  EST  TW   .    EST  .    .    .    .    .    .    .    .    .    .    .    DQS  DQS  "
    "EST\n"
    "DQS .   .    .    TW   .    .    TW   TW   .    .    .    .    DQS  TW   .    .    .    .    .    .    DQS  DQS  "
    ".\n"
    "TW  TW  .    .    .    TW   .    TW   .    .    TW   .    .    .    .    I    .    .    .    .    .    TW   TW   "
    ".\n"
    "SQS .   .    .    .    .    .    .    .    .    .    I    I    SQS  I    .    .    .    .    .    .    .    I    "
    ".\n"
    "SQR .   .    .    .    .    .    .    .    .    SQR  .    .    .    .    .    .    .    TW   TW   .    .    TW   "
    ".\n";

std::size_t place_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  INFO(name);
  REQUIRE(found != names.end());
  return static_cast<std::size_t>(found - names.begin());
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// The cells of a line of a table.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line.substr(1));
  for (std::string cell; std::getline(stream, cell, '|');) cells.push_back(trimmed(cell));
  return cells;
}

const std::map<std::string, Action> kActionNames{{"send REQ", Action::kSendReq},
                                                 {"send MRA(REQ)", Action::kSendMraReq},
                                                 {"send MRA(REP)", Action::kSendMraRep},
                                                 {"send REJ", Action::kSendRej},
                                                 {"send REJ (time-out)", Action::kSendRejTimeout},
                                                 {"send REP", Action::kSendRep},
                                                 {"send RTU", Action::kSendRtu},
                                                 {"send DREQ", Action::kSendDreq},
                                                 {"send DREP", Action::kSendDrep},
                                                 {"send APR", Action::kSendApr},
                                                 {"send SIDR REQ", Action::kSendSidrReq},
                                                 {"send SIDR REP", Action::kSendSidrRep},
                                                 {"send SIDR REP refused", Action::kSendSidrRejected},
                                                 {"repeat", Action::kRepeat},
                                                 {"await", Action::kAwait},
                                                 {"wait on", Action::kWaitOn},
                                                 {"stop", Action::kStop},
                                                 {"linger", Action::kLinger},
                                                 {"tell", Action::kTell}};

}  // namespace

TEST_CASE("every state knows what each input means (12.9)", "[table]") {
  REQUIRE(kStateNames.size() == kStates);
  REQUIRE(kInputNames.size() == kInputs);
  std::istringstream lines(kMatrix);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    rows.emplace_back();
    for (std::string word; words >> word;) rows.back().push_back(word);
    REQUIRE(rows.back().size() == kInputs + 1);
  }
  REQUIRE(rows.size() == kStates);
  for (std::size_t state = 0; state < kStates; ++state) {
    for (std::size_t input = 0; input < kInputs; ++input) {
      INFO(kStateNames[state] << ", " << kInputNames[input]);
      const Rule* const rule = find_rule(static_cast<State>(state), static_cast<Input>(input));
      const std::string& expected = rows[state][input + 1];
      CHECK((rule == nullptr) == (expected == "."));
      if (rule != nullptr) CHECK(rows[static_cast<std::size_t>(rule->next)][0] == expected);
    }
  }
}

TEST_CASE("the page shows the table", "[table]") {
  std::ifstream page(RNIC_SOURCE_DIR "/docs/connection_manager.md");
  std::size_t shown = 0;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line == "| state | input | next | what follows |") {
      inside = true;
      std::getline(page, line);
      continue;
    }
    if (inside && (line.empty() || line[0] != '|')) break;
    if (!inside) continue;
    const auto cells = cells_of(line);
    INFO(line);
    REQUIRE(cells.size() == 4);
    auto actions = Action::kNone;
    std::istringstream list(cells[3]);
    for (std::string action; std::getline(list, action, ',');) {
      INFO(action);
      REQUIRE(kActionNames.contains(trimmed(action)));
      actions = actions | kActionNames.at(trimmed(action));
    }
    const Rule* const rule = find_rule(static_cast<State>(place_of(kStateNames, cells[0])),
                                       static_cast<Input>(place_of(kInputNames, cells[1])));
    REQUIRE(rule != nullptr);
    CHECK(static_cast<std::size_t>(rule->next) == place_of(kStateNames, cells[2]));
    CHECK(rule->actions == actions);
    ++shown;
  }
  CHECK(shown == rules().size());
}

TEST_CASE("nobody waits without a timer, and no timer runs where nothing is awaited", "[table]") {
  const auto waits = [](State state) {
    return state == State::kReqSent || state == State::kMraReqReceived || state == State::kRepSent ||
           state == State::kMraRepReceived || state == State::kDreqSent || state == State::kTimeWait ||
           state == State::kSidrReqSent;
  };
  for (const Rule& rule : rules()) {
    INFO(kStateNames[static_cast<std::size_t>(rule.state)] << ", "
                                                           << kInputNames[static_cast<std::size_t>(rule.input)]);
    const bool starts = has(rule.actions, Action::kAwait) || has(rule.actions, Action::kWaitOn) ||
                        has(rule.actions, Action::kLinger) || rule.input == Input::kTimeout;
    const bool expired = rule.input == Input::kRetriesOver || rule.input == Input::kTimeWaitOver;
    if (waits(rule.next)) CHECK((starts || (waits(rule.state) && !expired && !has(rule.actions, Action::kStop))));
    if (!waits(rule.next)) CHECK_FALSE(starts);
    if (waits(rule.state) && !waits(rule.next)) CHECK((has(rule.actions, Action::kStop) || expired));
  }
}
