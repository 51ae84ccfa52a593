#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "driver/kmd/account.hpp"
#include "driver/kmd/client_object.hpp"

namespace rnic::kmd {

/// The objects of one client by their handles: a place in the low 20 bits, above it how often the place was used
/// before, modulo 4096. A place rests until 256 others have been given back after it. So a handle that is gone names no
/// other object until a million others are gone, too. Thread safe; lets no time pass.
class HandleTable {
 public:
  /// What it holds, `account` counts.
  explicit HandleTable(std::shared_ptr<Account> account) : account_(std::move(account)) {}
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;
  ~HandleTable();

  /// A handle for an object that is being made: nobody finds it yet. Given back unless it is filled, which needs no
  /// memory.
  class Place {
   public:
    Place(HandleTable& table, calls::Handle handle, calls::ObjectKind kind)
        : table_(&table), handle_(handle), kind_(kind) {}
    Place(Place&& other) noexcept
        : table_(std::exchange(other.table_, nullptr)), handle_(other.handle_), kind_(other.kind_) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (table_ != nullptr) table_->give_back(handle_, kind_);
    }
    [[nodiscard]] calls::Handle handle() const { return handle_; }
    void fill(std::shared_ptr<ClientObject> object) {
      std::exchange(table_, nullptr)->fill(handle_, std::move(object));
    }

   private:
    HandleTable* table_;
    calls::Handle handle_;
    calls::ObjectKind kind_;
  };
  /// Errors: kOutOfResources (the quota), kOutOfMemory.
  [[nodiscard]] Result<Place> reserve(calls::ObjectKind kind);

  /// Errors: kNotFound, also for an object that is ending.
  [[nodiscard]] Result<std::shared_ptr<ClientObject>> find(calls::Handle handle, calls::ObjectKind kind);

  /// Keeps an object from being destroyed.
  class Use {
   public:
    Use() = default;
    Use(HandleTable& table, std::shared_ptr<ClientObject> object) : table_(&table), object_(std::move(object)) {}
    Use(Use&& other) noexcept : table_(other.table_), object_(std::move(other.object_)) {}
    Use& operator=(Use&& other) noexcept {
      std::swap(table_, other.table_);
      std::swap(object_, other.object_);
      return *this;
    }
    ~Use() {
      if (object_ != nullptr) table_->let_go(*object_);
    }
    [[nodiscard]] ClientObject* get() const { return object_.get(); }

   private:
    HandleTable* table_{};
    std::shared_ptr<ClientObject> object_;
  };
  /// Errors: as find.
  [[nodiscard]] Result<Use> use(calls::Handle handle, calls::ObjectKind kind);

  /// From now on nobody finds it or begins to use it. Errors: kNotFound, kBusy (it is in use).
  [[nodiscard]] Result<std::shared_ptr<ClientObject>> begin_end(calls::Handle handle, calls::ObjectKind kind);
  /// It stays after all.
  void stay(ClientObject& object);
  /// It is gone; so is its handle.
  void end(ClientObject& object);

  /// Of a client that goes: the newest object of a kind, which begins to end; null if there is none. One that is in use
  /// by something that has no handle any more is among them.
  [[nodiscard]] std::shared_ptr<ClientObject> next_to_end(calls::ObjectKind kind);

  [[nodiscard]] std::uint32_t count(calls::ObjectKind kind);
  /// Those of a kind that are not ending. Throws std::bad_alloc.
  [[nodiscard]] std::vector<calls::Handle> handles(calls::ObjectKind kind);

 private:
  static constexpr unsigned kIndexBits = 20;
  static constexpr std::uint32_t kGenerations = 1U << (32 - kIndexBits);
  static constexpr std::size_t kResting = 256;

  struct Entry {
    std::shared_ptr<ClientObject> object;
    std::uint32_t generation{};
    std::uint32_t next_free{};  ///< Of a place that is free: the one that was given back after it
  };
  [[nodiscard]] static std::size_t index_of(calls::Handle handle) { return handle & ((1U << kIndexBits) - 1); }
  [[nodiscard]] std::uint32_t& count_of(calls::ObjectKind kind) { return counts_[static_cast<std::size_t>(kind) - 1]; }
  /// A place that is free. Throws std::bad_alloc. Errors: kOutOfResources.
  [[nodiscard]] Result<std::uint32_t> take_place();
  void free_place(std::uint32_t index) noexcept;
  [[nodiscard]] ClientObject* look_up(calls::Handle handle, calls::ObjectKind kind);
  void fill(calls::Handle handle, std::shared_ptr<ClientObject> object);
  void give_back(calls::Handle handle, calls::ObjectKind kind) noexcept;
  void release(calls::Handle handle, calls::ObjectKind kind) noexcept;
  void let_go(ClientObject& object);

  std::mutex mutex_;
  const std::shared_ptr<Account> account_;
  std::vector<Entry> entries_;  ///< Place 0 is never used, so no handle is 0
  std::size_t free_count_{};
  std::uint32_t oldest_free_{};
  std::uint32_t newest_free_{};
  std::array<std::uint32_t, kObjectKinds> counts_{};
  std::uint64_t births_{};
};

}  // namespace rnic::kmd
