#include <pcap/pcap.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <vector>

#include "model/pcap_writer.hpp"

using namespace rnic::model;

namespace {

const std::string kPath = (std::filesystem::temp_directory_path() / "rnic_test_pcap_writer.pcap").string();

struct Reader {
  explicit Reader(const std::string& path) {
    char error[PCAP_ERRBUF_SIZE];
    handle = pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error);
    REQUIRE(handle != nullptr);
  }
  ~Reader() { pcap_close(handle); }
  pcap_t* handle;
};

std::vector<std::uint8_t> frame_of(std::size_t bytes) {
  std::vector<std::uint8_t> frame(bytes);
  for (std::size_t i = 0; i < bytes; ++i) frame[i] = static_cast<std::uint8_t>(i * 3);
  return frame;
}

}  // namespace

TEST_CASE("libpcap reads back what was written, to the nanosecond") {
  PcapWriter writer(kPath);
  writer.write(1'234'567'999, frame_of(60));                 // 1234567.999 ns
  writer.write(5'000'000'000'000 + 42'000, frame_of(4200));  // 5 s and 42 ns
  writer.flush();
  CHECK(writer.frames() == 2);

  Reader reader(kPath);
  CHECK(pcap_datalink(reader.handle) == DLT_EN10MB);
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  REQUIRE(pcap_next_ex(reader.handle, &header, &data) == 1);
  CHECK(header->ts.tv_sec == 0);
  CHECK(header->ts.tv_usec == 1'234'567);
  CHECK(std::vector<std::uint8_t>(data, data + header->caplen) == frame_of(60));
  REQUIRE(pcap_next_ex(reader.handle, &header, &data) == 1);
  CHECK(header->ts.tv_sec == 5);
  CHECK(header->ts.tv_usec == 42);
  CHECK(header->len == 4200);
  CHECK(std::vector<std::uint8_t>(data, data + header->caplen) == frame_of(4200));
  CHECK(pcap_next_ex(reader.handle, &header, &data) == PCAP_ERROR_BREAK);

  // The magic number of files with nanoseconds (libpcap, pcap-savefile).
  std::FILE* file = std::fopen(kPath.c_str(), "rb");
  REQUIRE(file != nullptr);
  std::uint32_t magic = 0;
  CHECK(std::fread(&magic, sizeof magic, 1, file) == 1);
  std::fclose(file);
  CHECK(magic == 0xA1B23C4D);
  writer.close();
  std::filesystem::remove(kPath);
}

TEST_CASE("a file that cannot be written is an error with its name") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(PcapWriter("/nonexistent/x.pcap"), Contains("/nonexistent/x.pcap") && Contains("No such file"));
  PcapWriter full("/dev/full");
  CHECK_THROWS_WITH(([&] {
                      for (int i = 0; i < 100; ++i) full.write(0, frame_of(1000));
                      full.flush();
                    }()),
                    Contains("/dev/full") && Contains("No space"));
}

TEST_CASE("nothing can be written after close") {
  PcapWriter writer(kPath);
  writer.close();
  writer.close();
  CHECK_THROWS_AS(writer.write(0, frame_of(60)), std::logic_error);
  std::filesystem::remove(kPath);
}
