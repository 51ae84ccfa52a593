#include "tests/system/dispatch_level.hpp"

#include <pthread.h>
#include <time.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>
#include <utility>

namespace rnic::test {
namespace {

thread_local bool t_raised = false;
thread_local const char* t_broken = nullptr;
thread_local std::uint64_t t_charged_ns = 0;

/// What the dearest call charges for itself (driver/costs.hpp); less than whoever looks again and again lets pass.
constexpr std::uint64_t kMostChargedNs = 200;

void note(const char* what) {
  if (t_raised && t_broken == nullptr) t_broken = what;
}

/// Inside the machine, for a scope.
class Machinery {
 public:
  Machinery() : raised_(std::exchange(t_raised, false)) {}
  Machinery(const Machinery&) = delete;
  Machinery& operator=(const Machinery&) = delete;
  ~Machinery() { t_raised = raised_; }

 private:
  const bool raised_;
};

void* take(std::size_t bytes) {
  note("operator new");
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* take_aligned(std::size_t bytes, std::align_val_t alignment) {
  note("operator new");
  const auto to = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(to, (bytes + to - 1) / to * to);
}

void* or_throw(void* made) {
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

}  // namespace

DispatchLevel::DispatchLevel() {
  t_broken = nullptr;
  t_charged_ns = 0;
  t_raised = true;
}
DispatchLevel::~DispatchLevel() { t_raised = false; }
const char* DispatchLevel::broken() const { return t_broken; }

void DispatchDevice::write64(std::uint64_t offset, std::uint64_t value) {
  const Machinery inside;
  device_.write64(offset, value);
}
void DispatchDevice::write_burst64(std::uint64_t offset, std::span<const std::uint8_t, 64> data) {
  const Machinery inside;
  device_.write_burst64(offset, data);
}
/// Who takes it is about to wait.
std::uint64_t DispatchDevice::wake_count() {
  note("Device::wake_count");
  const Machinery inside;
  return device_.wake_count();
}
void DispatchDevice::wake() {
  const Machinery inside;
  device_.wake();
}
bool DispatchDevice::wait(std::uint64_t seen, std::uint64_t timeout_ns) {
  note("Device::wait");
  const Machinery inside;
  return device_.wait(seen, timeout_ns);
}
bool DispatchDevice::removed() {
  const Machinery inside;
  return device_.removed();
}
void DispatchDevice::report(DeviceOddity oddity, std::uint32_t number) {
  const Machinery inside;
  device_.report(oddity, number);
}
/// On hardware nothing; here a call charges its cost.
void DispatchDevice::elapse(std::uint64_t ns) {
  if (t_raised && (t_charged_ns += ns) > kMostChargedNs) note("Device::elapse");
  const Machinery inside;
  device_.elapse(ns);
}
void DispatchDevice::relax() {
  const Machinery inside;
  device_.relax();
}
std::uint64_t DispatchDevice::now_ns() {
  const Machinery inside;
  return device_.now_ns();
}
std::uint64_t DispatchDevice::read64(std::uint64_t offset) {
  note("Device::read64");
  const Machinery inside;
  return device_.read64(offset);
}
Result<DmaBuffer> DispatchDevice::dma_alloc(std::size_t bytes) {
  note("Device::dma_alloc");
  const Machinery inside;
  return device_.dma_alloc(bytes);
}
void DispatchDevice::dma_free(const DmaBuffer& buffer) {
  note("Device::dma_free");
  const Machinery inside;
  device_.dma_free(buffer);
}
Result<std::vector<std::uint64_t>> DispatchDevice::map_pages(const void* p, std::size_t length, bool writable) {
  note("Device::map_pages");
  const Machinery inside;
  return device_.map_pages(p, length, writable);
}
void DispatchDevice::unmap_pages(const void* p, std::size_t length, std::span<const std::uint64_t> iovas) {
  note("Device::unmap_pages");
  const Machinery inside;
  device_.unmap_pages(p, length, iovas);
}
Result<std::vector<std::uint64_t>> DispatchDevice::map_process_pages(std::int32_t process, std::uint64_t address,
                                                                     std::size_t length, bool writable) {
  note("Device::map_process_pages");
  const Machinery inside;
  return device_.map_process_pages(process, address, length, writable);
}
void DispatchDevice::unmap_process_pages(std::int32_t process, std::uint64_t address, std::size_t length,
                                         std::span<const std::uint64_t> iovas) {
  note("Device::unmap_process_pages");
  const Machinery inside;
  device_.unmap_process_pages(process, address, length, iovas);
}
void DispatchDevice::reset_function() {
  note("Device::reset_function");
  const Machinery inside;
  device_.reset_function();
}
Device::MsixMessage DispatchDevice::msix_message(std::uint32_t vector) {
  const Machinery inside;
  return device_.msix_message(vector);
}
std::uint64_t DispatchDevice::random64() {
  const Machinery inside;
  return device_.random64();
}

namespace {

struct Function {
  const char* name;
  const unsigned* calls;
};
std::vector<Function>& functions() {
  static std::vector<Function> all;
  return all;
}

/// The driver's table, once an object of the kind has been seen.
template <typename Table>
const Table* g_table = nullptr;

/// A function of a table at DISPATCH_LEVEL.
template <auto Member>
struct Raised;
template <typename Table, typename R, typename... Args, R (*Table::*Member)(Args...)>
struct Raised<Member> {
  static inline const char* name = nullptr;
  static inline unsigned calls = 0;

  static R call(Args... args) {
    ++calls;
    const Judge judge;
    const DispatchLevel level;
    return (g_table<Table>->*Member)(args...);
  }
  /// Once the level is left.
  struct Judge {
    ~Judge() {
      if (t_broken != nullptr) FAIL_CHECK(name << " at DISPATCH_LEVEL: " << t_broken);
    }
  };
};

template <auto Member>
auto raised(const char* name) {
  Raised<Member>::name = name;
  functions().push_back({name, &Raised<Member>::calls});
  return &Raised<Member>::call;
}

/// `table` is what raised ones have in place of the driver's.
template <typename Object, typename Table>
Object* put_table(Object* object, const Table& table) {
  if (object == nullptr || object->Dispatch == &table) return object;
  g_table<Table> = object->Dispatch;
  object->Dispatch = &table;
  return object;
}

#define RAISED(function) .function = raised<&Table::function>(#function)

const NDK_ADAPTER_DISPATCH& adapter_table() {
  using Table = NDK_ADAPTER_DISPATCH;
  static const Table table{
      RAISED(NdkQueryExtensionInterface),
      .NdkQueryAdapterInfo = [](auto... args) { return g_table<Table>->NdkQueryAdapterInfo(args...); },
      RAISED(NdkCreateCq),
      RAISED(NdkCreatePd),
      RAISED(NdkCreateSharedEndpoint),
      RAISED(NdkCreateConnector),
      RAISED(NdkCreateListener),
      RAISED(NdkBuildLAM),
      RAISED(NdkReleaseLAM)};
  return table;
}
const NDK_PD_DISPATCH& pd_table() {
  using Table = NDK_PD_DISPATCH;
  static const Table table{RAISED(NdkClosePd),         RAISED(NdkQueryExtensionInterface),
                           RAISED(NdkCreateMr),        RAISED(NdkCreateMw),
                           RAISED(NdkCreateSrq),       RAISED(NdkCreateQp),
                           RAISED(NdkCreateQpWithSrq), RAISED(NdkGetPrivilegedMemoryRegionToken)};
  return table;
}
const NDK_CQ_DISPATCH& cq_table() {
  using Table = NDK_CQ_DISPATCH;
  static const Table table{
      RAISED(NdkCloseCq),      RAISED(NdkQueryExtensionInterface),      RAISED(NdkResizeCq),      RAISED(NdkArmCq),
      RAISED(NdkGetCqResults), RAISED(NdkControlCqInterruptModeration), RAISED(NdkGetCqResultsEx)};
  return table;
}
const NDK_MR_DISPATCH& mr_table() {
  using Table = NDK_MR_DISPATCH;
  static const Table table{RAISED(NdkCloseMr),
                           RAISED(NdkQueryExtensionInterface),
                           RAISED(NdkRegisterMr),
                           RAISED(NdkDeregisterMr),
                           RAISED(NdkInitializeFastRegisterMr),
                           RAISED(NdkGetRemoteTokenFromMr),
                           RAISED(NdkGetLocalTokenFromMr)};
  return table;
}
const NDK_MW_DISPATCH& mw_table() {
  using Table = NDK_MW_DISPATCH;
  static const Table table{RAISED(NdkCloseMw), RAISED(NdkQueryExtensionInterface), RAISED(NdkGetRemoteTokenFromMw)};
  return table;
}
const NDK_QP_DISPATCH& qp_table() {
  using Table = NDK_QP_DISPATCH;
  static const Table table{RAISED(NdkCloseQp),
                           RAISED(NdkQueryExtensionInterface),
                           RAISED(NdkFlush),
                           RAISED(NdkSend),
                           RAISED(NdkReceive),
                           RAISED(NdkBind),
                           RAISED(NdkFastRegister),
                           RAISED(NdkInvalidate),
                           RAISED(NdkRead),
                           RAISED(NdkWrite),
                           RAISED(NdkSendAndInvalidate)};
  return table;
}
const NDK_SRQ_DISPATCH& srq_table() {
  using Table = NDK_SRQ_DISPATCH;
  static const Table table{RAISED(NdkCloseSrq), RAISED(NdkQueryExtensionInterface), RAISED(NdkModifySrq),
                           RAISED(NdkSrqReceive)};
  return table;
}
const NDK_CONNECTOR_DISPATCH& connector_table() {
  using Table = NDK_CONNECTOR_DISPATCH;
  static const Table table{RAISED(NdkCloseConnector),  RAISED(NdkQueryExtensionInterface),
                           RAISED(NdkConnect),         RAISED(NdkConnectWithSharedEndpoint),
                           RAISED(NdkCompleteConnect), RAISED(NdkAccept),
                           RAISED(NdkReject),          RAISED(NdkGetConnectionData),
                           RAISED(NdkGetLocalAddress), RAISED(NdkGetPeerAddress),
                           RAISED(NdkDisconnect)};
  return table;
}
const NDK_LISTENER_DISPATCH& listener_table() {
  using Table = NDK_LISTENER_DISPATCH;
  static const Table table{RAISED(NdkCloseListener), RAISED(NdkQueryExtensionInterface), RAISED(NdkListen),
                           RAISED(NdkGetLocalAddress), RAISED(NdkControlConnectEvents)};
  return table;
}

#undef RAISED

}  // namespace

NDK_ADAPTER* at_dispatch_level(NDK_ADAPTER* object) { return put_table(object, adapter_table()); }
NDK_PD* at_dispatch_level(NDK_PD* object) { return put_table(object, pd_table()); }
NDK_CQ* at_dispatch_level(NDK_CQ* object) { return put_table(object, cq_table()); }
NDK_MR* at_dispatch_level(NDK_MR* object) { return put_table(object, mr_table()); }
NDK_MW* at_dispatch_level(NDK_MW* object) { return put_table(object, mw_table()); }
NDK_QP* at_dispatch_level(NDK_QP* object) { return put_table(object, qp_table()); }
NDK_SRQ* at_dispatch_level(NDK_SRQ* object) { return put_table(object, srq_table()); }
NDK_CONNECTOR* at_dispatch_level(NDK_CONNECTOR* object) { return put_table(object, connector_table()); }
NDK_LISTENER* at_dispatch_level(NDK_LISTENER* object) { return put_table(object, listener_table()); }

std::vector<std::string> never_raised() {
  for (const auto make : {+[] { static_cast<void>(adapter_table()); }, +[] { static_cast<void>(pd_table()); },
                          +[] { static_cast<void>(cq_table()); }, +[] { static_cast<void>(mr_table()); },
                          +[] { static_cast<void>(mw_table()); }, +[] { static_cast<void>(qp_table()); },
                          +[] { static_cast<void>(srq_table()); }, +[] { static_cast<void>(connector_table()); },
                          +[] { static_cast<void>(listener_table()); }}) {
    make();
  }
  std::vector<std::string> names;
  for (const Function& function : functions()) {
    if (*function.calls == 0) names.emplace_back(function.name);
  }
  return names;
}

}  // namespace rnic::test

void* operator new(std::size_t bytes) { return rnic::test::or_throw(rnic::test::take(bytes)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return rnic::test::take(bytes); }
void* operator new(std::size_t bytes, std::align_val_t to) {
  return rnic::test::or_throw(rnic::test::take_aligned(bytes, to));
}
void* operator new(std::size_t bytes, std::align_val_t to, const std::nothrow_t&) noexcept {
  return rnic::test::take_aligned(bytes, to);
}
void operator delete(void* made) noexcept { std::free(made); }
void operator delete(void* made, std::size_t) noexcept { std::free(made); }
void operator delete(void* made, const std::nothrow_t&) noexcept { std::free(made); }
void operator delete(void* made, std::align_val_t) noexcept { std::free(made); }
void operator delete(void* made, std::size_t, std::align_val_t) noexcept { std::free(made); }
void operator delete(void* made, std::align_val_t, const std::nothrow_t&) noexcept { std::free(made); }

// The linker sends the driver's calls of these here (--wrap).
extern "C" {

void* __real_malloc(std::size_t bytes);
void* __wrap_malloc(std::size_t bytes) {
  rnic::test::note("malloc");
  return __real_malloc(bytes);
}
void* __real_calloc(std::size_t count, std::size_t bytes);
void* __wrap_calloc(std::size_t count, std::size_t bytes) {
  rnic::test::note("calloc");
  return __real_calloc(count, bytes);
}
void* __real_realloc(void* before, std::size_t bytes);
void* __wrap_realloc(void* before, std::size_t bytes) {
  rnic::test::note("realloc");
  return __real_realloc(before, bytes);
}
void* __real_aligned_alloc(std::size_t alignment, std::size_t bytes);
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t bytes) {
  rnic::test::note("aligned_alloc");
  return __real_aligned_alloc(alignment, bytes);
}
/// A throw takes memory.
void* __real___cxa_allocate_exception(std::size_t bytes) noexcept;
void* __wrap___cxa_allocate_exception(std::size_t bytes) noexcept {
  rnic::test::note("throw");
  return __real___cxa_allocate_exception(bytes);
}
int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  rnic::test::note("a mutex");
  return __real_pthread_mutex_lock(mutex);
}
int __real_pthread_rwlock_rdlock(pthread_rwlock_t* lock);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  rnic::test::note("a lock of readers");
  return __real_pthread_rwlock_rdlock(lock);
}
int __real_pthread_rwlock_wrlock(pthread_rwlock_t* lock);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  rnic::test::note("a lock of writers");
  return __real_pthread_rwlock_wrlock(lock);
}
int __real_pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex);
int __wrap_pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  rnic::test::note("a condition");
  return __real_pthread_cond_wait(condition, mutex);
}
int __real_nanosleep(const timespec* wanted, timespec* left);
int __wrap_nanosleep(const timespec* wanted, timespec* left) {
  rnic::test::note("nanosleep");
  return __real_nanosleep(wanted, left);
}

}  // extern "C"
