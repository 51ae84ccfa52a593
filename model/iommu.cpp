#include "model/iommu.hpp"

#include <sstream>
#include <stdexcept>
#include <utility>

#include "model/pcie.hpp"

namespace rnic::model {
namespace {

// Pages lie from 4 GiB on, above every legacy and interrupt address, to the middle of the address space; contiguous
// ranges follow from there.
constexpr std::uint64_t kFirstPage = 0x1'0000'0000 / kPageBytes;
constexpr unsigned kLogPage = 12;
constexpr unsigned kLeastBits = 34;
/// Pages of a mapping that has gone whose places are given back at once.
constexpr std::size_t kGivenBack = 512;

std::uint64_t middle_page(unsigned address_bits) {
  if (address_bits < kLeastBits || address_bits > 64) throw std::invalid_argument("IOVAs have 34 to 64 bits");
  return std::uint64_t{1} << (address_bits - 1 - kLogPage);
}

[[noreturn]] void not_mapped(std::uint64_t iova) {
  std::ostringstream text;
  text << "device address 0x" << std::hex << iova << " is not mapped";
  throw std::invalid_argument(text.str());
}

}  // namespace

Iommu::Iommu(std::uint64_t seed, unsigned address_bits)
    : random_(seed, "iommu"), end_page_(middle_page(address_bits)), next_range_(end_page_) {}

std::uint64_t Iommu::scattered_page() {
  // A free page with free neighbours: two pages mapped one after the other never look contiguous.
  for (;;) {
    const std::uint64_t page = kFirstPage + random_.below(end_page_ - kFirstPage - 1);
    if (!pages_.contains(page) && !pages_.contains(page - 1) && !pages_.contains(page + 1)) return page;
  }
}

std::vector<std::uint64_t> Iommu::map_pages(const void* start, std::size_t length, Rights rights) {
  return map_process_pages(0, reinterpret_cast<std::uint64_t>(start), length, rights, 0);
}

std::int32_t Iommu::add_process(std::shared_ptr<ProcessMemory> memory) {
  processes_.emplace(++last_process_, std::move(memory));
  return last_process_;
}

std::vector<std::uint64_t> Iommu::map_process_pages(std::int32_t process, std::uint64_t address, std::size_t length,
                                                    Rights rights, Mapping mapping) {
  const std::uint64_t first = address / kPageBytes;
  const std::uint64_t last = (address + (length == 0 ? 0 : length - 1)) / kPageBytes;
  std::vector<std::uint64_t> iovas;
  iovas.reserve(last - first + 1);
  give_back(2 * (last - first + 1));
  for (std::uint64_t page = first; page <= last; ++page) {
    const std::uint64_t number = scattered_page();
    pages_.emplace(number, Page{reinterpret_cast<std::uint8_t*>(page * kPageBytes), rights, process, false, mapping});
    iovas.push_back(number * kPageBytes);
  }
  if (mapping != 0) mappings_[mapping] += iovas.size();
  return iovas;
}

void Iommu::unmap_process_pages(std::span<const std::uint64_t> iovas) {
  if (iovas.empty()) return;
  const Page* const first = find(iovas.front());
  const auto mapping = first == nullptr ? mappings_.end() : mappings_.find(first->mapping);
  if (mapping == mappings_.end() || mapping->second != iovas.size()) not_mapped(iovas.front());
  mappings_.erase(mapping);
  left_.emplace_back(iovas.begin(), iovas.end());
  left_pages_ += iovas.size();
  give_back(kGivenBack);
}

void Iommu::give_back(std::size_t most) {
  for (std::size_t i = 0; i < most && !left_.empty(); ++i, --left_pages_) {
    pages_.erase(left_.front().back() / kPageBytes);
    left_.front().pop_back();
    if (left_.front().empty()) left_.pop_front();
  }
}

const Iommu::Page* Iommu::find(std::uint64_t iova) const {
  const auto found = pages_.find(iova / kPageBytes);
  if (found == pages_.end()) return nullptr;
  const Page& page = found->second;
  return page.mapping == 0 || mappings_.contains(page.mapping) ? &page : nullptr;
}

std::uint64_t Iommu::map_range(void* start, std::size_t length, Rights rights) {
  const auto address = reinterpret_cast<std::uint64_t>(start);
  if (address % kPageBytes != 0) throw std::invalid_argument("map_range: start is not page aligned");
  const std::uint64_t count = (length + kPageBytes - 1) / kPageBytes;
  const std::uint64_t first = next_range_ + 1 + random_.below(16);  // a hole before each range
  for (std::uint64_t i = 0; i < count; ++i) {
    pages_.emplace(first + i, Page{reinterpret_cast<std::uint8_t*>(address + i * kPageBytes), rights});
  }
  next_range_ = first + count;
  return first * kPageBytes;
}

void Iommu::set_windows(std::vector<Window> windows) {
  for (const Window& window : windows) {
    if (window.address % kPageBytes != 0 || window.bytes % kPageBytes != 0 ||
        window.address + window.bytes < window.address)
      throw std::invalid_argument("a window is of whole pages");
  }
  windows_ = std::move(windows);
}

std::uint8_t* Iommu::in_window(std::uint64_t iova) const {
  for (const Window& window : windows_) {
    if (iova - window.address < window.bytes) return window.host + (iova - window.address);
  }
  return nullptr;
}

bool Iommu::unmap(std::uint64_t iova) { return iova % kPageBytes == 0 && pages_.erase(iova / kPageBytes) == 1; }

void Iommu::unmap_pages(std::span<const std::uint64_t> iovas) {
  const std::uint64_t* wrong = nullptr;
  for (const auto& iova : iovas) {
    if (!unmap(iova)) wrong = &iova;
  }
  if (wrong != nullptr) not_mapped(*wrong);
}

void Iommu::unmap_range(std::uint64_t iova, std::size_t length) {
  std::vector<std::uint64_t> pages;
  for (std::size_t done = 0; done < length; done += kPageBytes) pages.push_back(iova + done);
  unmap_pages(pages);
}

std::size_t Iommu::revoke(const void* host) {
  const auto address = reinterpret_cast<std::uint64_t>(host);
  auto* const page_start = reinterpret_cast<const std::uint8_t*>(address - address % kPageBytes);
  std::size_t count = 0;
  for (auto& [number, page] : pages_) {
    if (page.host != page_start || page.revoked) continue;
    page.revoked = true;
    ++count;
  }
  return count;
}

bool Iommu::revoke_page(std::uint64_t iova) {
  const Page* const page = find(iova);
  if (page == nullptr || page->revoked) return false;
  pages_.at(iova / kPageBytes).revoked = true;
  return true;
}

const std::uint8_t* Iommu::peek(std::uint64_t iova) const {
  if (const std::uint8_t* const at = in_window(iova)) return at;
  const Page* const page = find(iova);
  return page == nullptr || page->revoked ? nullptr : page->host + iova % kPageBytes;
}

Iommu::Place Iommu::locate(std::uint64_t iova, Access access) {
  if (std::uint8_t* const at = in_window(iova)) return {at, 0};
  give_back(2);
  const Page* const page = find(iova);
  if (page != nullptr && !page->revoked && (access == Access::kRead || page->rights == Rights::kReadWrite))
    return {page->host + iova % kPageBytes, page->process};
  const Reason reason = page == nullptr ? Reason::kNotMapped : page->revoked ? Reason::kRevoked : Reason::kReadOnly;
  fault({iova, access, reason});
  return {};
}

void Iommu::fault(const Fault& fault) {
  ++fault_count_;
  if (fault.reason == Reason::kGone) ++gone_count_;
  fault_log_.push_back(fault);
  if (fault_log_.size() > kFaultLogDepth) fault_log_.pop_front();
  if (handler_) handler_(fault);
}

void Iommu::clear(std::uint64_t seed, unsigned address_bits) {
  end_page_ = middle_page(address_bits);
  random_ = Random(seed, "iommu");
  pages_.clear();
  processes_.clear();
  mappings_.clear();
  left_.clear();
  left_pages_ = 0;
  windows_.clear();
  next_range_ = end_page_;
  fault_count_ = 0;
  gone_count_ = 0;
  fault_log_.clear();
}

}  // namespace rnic::model
