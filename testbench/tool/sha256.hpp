#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct evp_md_ctx_st;

namespace rnic::testbench {

/// Running SHA-256 (OpenSSL).
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void add(std::span<const std::uint8_t> bytes);
  /// 64 hexadecimal digits. Ends the computation.
  [[nodiscard]] std::string finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace rnic::testbench
