#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "testbench/compare/program_plan.hpp"
#include "testbench/compare/program_requests.hpp"

namespace rnic::testbench {

/// Draws the requests of one direction one after the other.
class RequestMaker {
 public:
  RequestMaker(ProgramPlan& plan, std::size_t host, std::size_t qp)
      : plan_(plan), host_(host), peer_(1 - host), qp_(qp), pair_(plan.pairs[qp]), was_dead_(pair_.dead) {
    planned_.first_psn = planned_.end_psn = pair_.psn[host];
  }

  PlannedRequests take();
  void add_any();
  void add_send(bool blind);
  void add_write(bool blind);
  void post_receive(std::uint64_t bytes, bool wrong = false);

 protected:
  using json = nlohmann::json;

  [[nodiscard]] static json place(const std::string& region, std::uint64_t offset, std::uint64_t length) {
    return {{"region", region}, {"offset", offset}, {"length", length}};
  }
  [[nodiscard]] static json remote(const std::string& region, std::uint64_t offset) {
    return {{"region", region}, {"offset", offset}};
  }
  void add_read();
  void add_atomic();
  /// Binds, registers, ends or uses a key; a Send where there is none.
  void add_key_request();
  json begin(const char* what);
  void finish(json step, std::uint32_t packets);
  std::uint64_t draw_length();
  /// Segments of a request, or of a Receive, one behind the other from somewhere in the first quarter of a zone on, at
  /// any alignment.
  json segments(const std::string& region, std::uint64_t zone, std::uint64_t length);
  /// On a queue pair on which something has failed, from memory that nobody can have written.
  json source(std::uint64_t length);
  json sink(std::uint64_t length);
  /// Where an atomic puts what it has found: one segment of 8 bytes.
  json result_sink();
  void flag(json& step, std::uint64_t length, bool may_be_inline);
  /// The message has a Receive, and fits; gives its length.
  std::uint64_t provide_receive(std::uint64_t length);
  void open_key(PlannedKey& key);
  void end_key(PlannedKey& key);
  void end_by_peer(PlannedKey& key);
  /// Reads in one batch, Writes in the next one, so that nothing that is written is read.
  void use_key(PlannedKey& key);
  [[nodiscard]] json key_place(const PlannedKey& key, std::uint64_t offset) const;
  /// A Read, a Write or an atomic, as its peer allows.
  json remote_request(std::uint64_t length);

  ProgramPlan& plan_;
  const std::size_t host_, peer_, qp_;
  PlannedPair& pair_;
  PlannedRequests planned_;
  const bool was_dead_;
};

}  // namespace rnic::testbench
