#include <catch2/catch.hpp>
#include <set>
#include <stdexcept>

#include "model/iommu.hpp"

using rnic::model::Iommu;

namespace {

constexpr std::uint64_t kPage = 4096;
using Access = Iommu::Access;
using Rights = Iommu::Rights;

std::uint8_t* pointer(std::uint64_t address) { return reinterpret_cast<std::uint8_t*>(address); }

}  // namespace

TEST_CASE("pages are scattered, never contiguous, and the same for one seed") {
  Iommu iommu(5), same(5), other(6);
  const auto iovas = iommu.map_pages(pointer(0x10'0800), 200 * kPage, Rights::kReadWrite);
  REQUIRE(iovas.size() == 201);  // starts in the middle of a page
  std::set<std::uint64_t> all(iovas.begin(), iovas.end());
  CHECK(all.size() == iovas.size());
  for (const auto iova : iovas) {
    CHECK(iova % kPage == 0);
    CHECK(iova >= 0x1'0000'0000);
    CHECK_FALSE(all.contains(iova + kPage));
  }
  CHECK(same.map_pages(pointer(0x10'0800), 200 * kPage, Rights::kReadWrite) == iovas);
  CHECK(other.map_pages(pointer(0x10'0800), 200 * kPage, Rights::kReadWrite) != iovas);
  for (std::size_t i = 0; i < iovas.size(); ++i) {
    CHECK(iommu.translate(iovas[i] + 12, Access::kWrite) == pointer(0x10'0000 + i * kPage + 12));
  }
}

TEST_CASE("a range is contiguous with holes around it") {
  Iommu iommu(1);
  const auto first = iommu.map_range(pointer(0x20'0000), 3 * kPage, Rights::kReadWrite);
  const auto second = iommu.map_range(pointer(0x30'0000), kPage, Rights::kRead);
  for (std::uint64_t i = 0; i < 3 * kPage; i += 512)
    CHECK(iommu.translate(first + i, Access::kRead) == pointer(0x20'0000 + i));
  CHECK(iommu.translate(first - 1, Access::kRead) == nullptr);
  CHECK(iommu.translate(first + 3 * kPage, Access::kRead) == nullptr);
  CHECK(second >= first + 4 * kPage);
  CHECK_THROWS_AS(iommu.map_range(pointer(0x30'0001), kPage, Rights::kRead), std::invalid_argument);
}

TEST_CASE("what is not allowed faults, is counted and reported") {
  Iommu iommu(1);
  std::vector<Iommu::Fault> reported;
  iommu.set_fault_handler([&](const Iommu::Fault& fault) { reported.push_back(fault); });
  const auto iova = iommu.map_pages(pointer(0x20'0000), 1, Rights::kRead).front();
  CHECK(iommu.translate(iova, Access::kRead) != nullptr);
  CHECK(iommu.translate(iova + 8, Access::kWrite) == nullptr);
  CHECK(iommu.translate(0x1000, Access::kRead) == nullptr);
  REQUIRE(iommu.fault_count() == 2);
  REQUIRE(reported.size() == 2);
  CHECK(reported[0].iova == iova + 8);
  CHECK(reported[0].access == Access::kWrite);
  CHECK(reported[0].reason == Iommu::Reason::kReadOnly);
  CHECK(reported[1].reason == Iommu::Reason::kNotMapped);
  for (int i = 0; i < 100; ++i) CHECK(iommu.translate(0, Access::kRead) == nullptr);
  CHECK(iommu.fault_count() == 102);
  CHECK(iommu.fault_log().size() == Iommu::kFaultLogDepth);
}

TEST_CASE("unmapped pages fault; mappings of one page are independent") {
  Iommu iommu(1);
  const auto first = iommu.map_pages(pointer(0x20'0000), 2 * kPage, Rights::kReadWrite);
  const auto second = iommu.map_pages(pointer(0x20'0000), 2 * kPage, Rights::kReadWrite);
  CHECK(iommu.mapped_pages() == 4);
  iommu.unmap_pages(first);
  CHECK(iommu.translate(first[0], Access::kRead) == nullptr);
  CHECK(iommu.translate(second[1], Access::kRead) == pointer(0x20'1000));
  CHECK_THROWS_AS(iommu.unmap_pages(first), std::invalid_argument);
  const auto range = iommu.map_range(pointer(0x30'0000), 2 * kPage, Rights::kReadWrite);
  iommu.unmap_range(range, 2 * kPage);
  CHECK(iommu.translate(range, Access::kRead) == nullptr);
  CHECK_THROWS_AS(iommu.unmap_range(range, kPage), std::invalid_argument);
  CHECK(iommu.mapped_pages() == 2);
  iommu.clear(1);
  CHECK(iommu.mapped_pages() == 0);
  CHECK(iommu.fault_count() == 0);
  CHECK(iommu.map_pages(pointer(0x20'0000), 2 * kPage, Rights::kReadWrite) == first);  // as from the start
}

TEST_CASE("revoked mappings fault, and their owner unmaps them as ever") {
  Iommu iommu(1);
  const auto pages = iommu.map_pages(pointer(0x20'0000), 2 * kPage, Rights::kReadWrite);
  const auto other = iommu.map_pages(pointer(0x20'0000), kPage, Rights::kRead);
  CHECK(iommu.peek(pages[0] + 5) == pointer(0x20'0005));
  CHECK(iommu.revoke_page(pages[0] + 100));
  CHECK_FALSE(iommu.revoke_page(pages[0]));
  CHECK_FALSE(iommu.revoke_page(0x5000));
  CHECK(iommu.peek(pages[0]) == nullptr);
  CHECK(iommu.fault_count() == 0);
  CHECK(iommu.translate(pages[0], Access::kRead) == nullptr);
  CHECK(iommu.fault_log().back().reason == Iommu::Reason::kRevoked);
  CHECK(iommu.translate(other[0], Access::kRead) == pointer(0x20'0000));
  CHECK(iommu.revoke(pointer(0x20'0123)) == 1);  // the one that is left of this page
  CHECK(iommu.translate(other[0], Access::kRead) == nullptr);
  CHECK(iommu.translate(pages[1], Access::kWrite) == pointer(0x20'1000));
  CHECK(iommu.revoke(pointer(0x90'0000)) == 0);
  const auto again = iommu.map_pages(pointer(0x20'0000), kPage, Rights::kRead);
  CHECK(iommu.translate(again[0], Access::kRead) == pointer(0x20'0000));
  iommu.unmap_pages(pages);
  iommu.unmap_pages(other);
  CHECK(iommu.mapped_pages() == 1);
}

TEST_CASE("a window is reached by its own addresses, and nothing beside it") {
  Iommu iommu(1);
  iommu.set_windows({{0x1000, 2 * kPage, pointer(0x40'0000)}, {0x1'0000'0000, kPage, pointer(0x50'0000)}});
  CHECK(iommu.translate(0x1000, Access::kWrite) == pointer(0x40'0000));
  CHECK(iommu.translate(0x2FFF, Access::kRead) == pointer(0x40'1FFF));
  CHECK(iommu.translate(0x1'0000'0010, Access::kWrite) == pointer(0x50'0010));
  CHECK(iommu.peek(0x1001) == pointer(0x40'0001));
  CHECK(iommu.fault_count() == 0);
  for (const std::uint64_t outside : {0x0FFFull, 0x3000ull, 0x1'0000'1000ull})
    CHECK(iommu.translate(outside, Access::kRead) == nullptr);
  CHECK(iommu.fault_count() == 3);
  CHECK(iommu.fault_log().back().reason == Iommu::Reason::kNotMapped);

  iommu.set_windows({});
  CHECK(iommu.translate(0x1000, Access::kRead) == nullptr);
  CHECK_THROWS_AS(iommu.set_windows({{0x1001, kPage, pointer(0x40'0000)}}), std::invalid_argument);
  CHECK_THROWS_AS(iommu.set_windows({{0x1000, 100, pointer(0x40'0000)}}), std::invalid_argument);
  CHECK_THROWS_AS(iommu.set_windows({{~std::uint64_t{0xFFF}, 2 * kPage, pointer(0x40'0000)}}), std::invalid_argument);
}
