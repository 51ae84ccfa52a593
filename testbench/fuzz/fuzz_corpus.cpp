#include "testbench/fuzz/fuzz_corpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace rnic::testbench {
namespace {

using Json = nlohmann::ordered_json;

std::string to_hex(const roce::Bytes& bytes) {
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

roce::Bytes from_hex(const std::string& text) {
  if (text.empty() || text.size() % 2 != 0 || text.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
    throw CorpusError("\"frame\" is no hexadecimal text");
  return roce::from_hex(text);
}

Json to_json(const CorpusEntry::Frame& one) {
  const auto& target = one.frame.target;
  return {{"host", one.host},
          {"target",
           {{"victim", target.victim},
            {"group", target.group},
            {"ipv6", target.path.ipv6},
            {"qpn", target.path.dest_qpn},
            {"psn", target.psn},
            {"rkey", target.rkey},
            {"va", target.va}}},
          {"bad_fcs", one.frame.bad_fcs},
          {"frame", to_hex(one.frame.bytes)}};
}

CorpusEntry::Frame frame_from(const Json& json) {
  CorpusEntry::Frame one;
  one.host = json.at("host");
  if (one.host > 1) throw CorpusError("\"host\" is neither 0 nor 1");
  const auto& target = json.at("target");
  one.frame.target.victim = target.at("victim");
  one.frame.target.group = target.value("group", false);
  one.frame.target.path.ipv6 = target.at("ipv6");
  one.frame.target.path.dest_qpn = target.at("qpn");
  one.frame.target.psn = target.at("psn");
  one.frame.target.rkey = target.at("rkey");
  one.frame.target.va = target.at("va");
  one.frame.bad_fcs = json.at("bad_fcs");
  one.frame.bytes = from_hex(json.at("frame"));
  return one;
}

}  // namespace

std::vector<CorpusEntry> read_corpus(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
    if (file.path().extension() == ".json") files.push_back(file.path());
  }
  if (error) throw CorpusError(fmt::format("cannot read folder '{}': {}", folder.string(), error.message()));
  std::sort(files.begin(), files.end());
  std::vector<CorpusEntry> entries;
  for (const auto& file : files) {
    std::ifstream in(file);
    if (!in) throw CorpusError(fmt::format("cannot read '{}'", file.string()));
    try {
      const auto json = Json::parse(in);
      auto& entry = entries.emplace_back();
      entry.note = json.at("note");
      entry.seed = json.at("seed");
      for (const auto& frame : json.at("frames")) entry.frames.push_back(frame_from(frame));
    } catch (const std::exception& problem) {
      throw CorpusError(fmt::format("{}: {}", file.string(), problem.what()));
    }
  }
  return entries;
}

std::filesystem::path write_corpus(const std::filesystem::path& folder, const CorpusEntry& entry) {
  std::filesystem::path path;
  for (unsigned number = 0; path.empty() || std::filesystem::exists(path); ++number)
    path = folder / fmt::format("violation_{}_{}.json", entry.seed, number);
  Json json{{"note", entry.note}, {"seed", entry.seed}, {"frames", Json::array()}, {"actions", entry.actions}};
  for (const auto& frame : entry.frames) json["frames"].push_back(to_json(frame));
  std::ofstream out(path);
  out << json.dump(1) << '\n';
  out.close();
  if (!out) throw CorpusError(fmt::format("cannot write '{}'", path.string()));
  return path;
}

}  // namespace rnic::testbench
