//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A context for a test, and tags for its calls.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_TEST_RANK_H
#define PLATEAU_RUNTIME_TEST_RANK_H

#include "plateau/runtime.h"
#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace plateau::rt::test {

inline plr_config makeConfig() {
  plr_config config = {};
  config.abi_version = PLR_ABI_VERSION;
  config.rank = 0;
  config.ranks = 1;
  config.device_bytes = 64 << 20;
  config.host_bytes = 1 << 20;
  config.gemm = PLR_GEMM_ONEDNN;
  return config;
}

inline constexpr plr_tag attentionTag = {"linalg.matmul q_proj", 3, PLR_ATTENTION, PLR_FORWARD};
inline constexpr plr_tag denseTag = {"linalg.matmul up_proj", 1, PLR_DENSE, PLR_BACKWARD};
inline constexpr plr_tag lossTag = {"moe.nll", -1, PLR_VOCABULARY, PLR_FORWARD};

/// Connects ranks for a test.
class Transport {
public:
  explicit Transport(int32_t ranks, double timeoutSeconds = 60) {
    char message[512] = "";
    EXPECT_EQ(plr_transport_create_threads(ranks, timeoutSeconds, &transport, message, sizeof message), PLR_OK)
        << message;
  }
  ~Transport() { plr_transport_destroy(transport); }
  Transport(const Transport &) = delete;
  Transport &operator=(const Transport &) = delete;
  operator plr_transport *() const { return transport; }

private:
  plr_transport *transport = nullptr;
};

/// One rank, destroyed with the test. One of several that comes without a transport gets one to itself.
class Rank {
public:
  explicit Rank(plr_config config = makeConfig()) {
    if (config.ranks > 1 && !config.transport)
      config.transport = *(ownTransport = std::make_unique<Transport>(config.ranks));
    char message[512] = "";
    EXPECT_EQ(plr_context_create(&config, &context, message, sizeof message), PLR_OK) << message;
  }
  ~Rank() { destroy(); }
  void destroy() {
    plr_context_destroy(context);
    context = nullptr;
  }
  Rank(const Rank &) = delete;
  Rank &operator=(const Rank &) = delete;

  operator plr_context *() const { return context; }
  plr_lane *lane(plr_lane_kind kind = PLR_COMPUTE) const { return plr_get_lane(context, kind); }
  std::string message() const {
    const char *text = nullptr;
    plr_context_error(context, &text);
    return text;
  }
  plr_space_report report(plr_space space = PLR_DEVICE) const {
    plr_space_report report = {};
    plr_memory_report(context, space, &report);
    return report;
  }

private:
  std::unique_ptr<Transport> ownTransport;
  plr_context *context = nullptr;
};

/// Holds a lane until it is opened.
class Gate {
public:
  void close(plr_lane *lane) {
    void *arguments[] = {this};
    plr_launch(lane, &lossTag, &wait, arguments, 1);
  }
  void release() { open = true; }
  /// Until the lane stands at the gate.
  void waitUntilReached() const {
    while (!reached)
      std::this_thread::yield();
  }
  ~Gate() { open = true; }

private:
  static void wait(void **arguments) {
    auto &gate = *static_cast<Gate *>(arguments[0]);
    gate.reached = true;
    while (!gate.open)
      std::this_thread::yield();
  }
  std::atomic<bool> open{false}, reached{false};
};

/// Appends arguments[1], read as a number, to the vector of numbers arguments[0].
inline void appendNumber(void **arguments) {
  static_cast<std::vector<intptr_t> *>(arguments[0])->push_back(reinterpret_cast<intptr_t>(arguments[1]));
}
inline plr_status append(plr_lane *lane, std::vector<intptr_t> &numbers, intptr_t number) {
  void *arguments[] = {&numbers, reinterpret_cast<void *>(number)};
  return plr_launch(lane, &lossTag, &appendNumber, arguments, 2);
}

/// The message of a rank on which `call`, a function of a compute lane, failed with `status`.
template <typename Function>
inline std::string failWith(plr_status status, Function call) {
  Rank rank;
  call(rank.lane());
  EXPECT_EQ(plr_synchronize(rank), status) << rank.message();
  return rank.message();
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

} // namespace plateau::rt::test

#endif // PLATEAU_RUNTIME_TEST_RANK_H
