//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/context.h"
#include "common/group.h"
#include "common/names.h"
#include "common/plan.h"
#include "common/transport.h"
#include <cstdio>

using namespace plateau::rt;
using host::Interleaver;

plr_context::plr_context(const plr_config &config, std::array<std::unique_ptr<Space>, PLR_SPACES> spaces)
    : config(config), spaces(std::move(spaces)) {
  for (plr_lane_kind kind = 0; kind < PLR_LANES; ++kind)
    lanes[kind] = std::make_unique<plr_lane>(*this, kind);
  if (config.schedule_seed != 0)
    interleaver = std::make_unique<Interleaver>(*this, config.schedule_seed);
}

plr_context::~plr_context() {
  drain();
  if (config.transport)
    config.transport->leave(*this);
}

plr_status plr_context::check(const char *where) {
  if (plr_status status = error.getStatus())
    return status;
  if (error.isInterrupted())
    return fail(PLR_INTERRUPTED, std::string("interrupted at ") + where);
  return PLR_OK;
}

plr_status plr_context::fail(plr_status status, const std::string &text) {
  std::string rank = "rank " + std::to_string(config.rank) + ": ";
  plr_status stands = error.fail(status, rank + text);
  // Another thread's failure may stand: it is that one the others are told.
  if (config.transport)
    config.transport->noteFailure(*this, error.getMessage() + rank.size());
  return stands;
}

void plr_context::drain() {
  for (std::unique_ptr<plr_lane> &lane : lanes)
    lane->waitIdle();
}

/// What is wrong with a configuration, empty when nothing is.
static std::string checkConfig(const plr_config &config) {
  auto field = [](const char *name, int64_t value, const char *rule) {
    return std::string("the configuration's ") + name + " is " + std::to_string(value) + ", but " + rule;
  };
  if (config.abi_version != PLR_ABI_VERSION)
    return "the caller was built for version " + std::to_string(config.abi_version) +
           " of the runtime's interface, but this runtime has version " + std::to_string(PLR_ABI_VERSION) +
           "; build both from one source";
  if (config.ranks < 1)
    return field("ranks", config.ranks, "must be at least 1");
  if (config.rank < 0 || config.rank >= config.ranks)
    return field("rank", config.rank, ("must be 0 ... " + std::to_string(config.ranks - 1)).c_str());
  if (config.device_bytes < 0)
    return field("device_bytes", config.device_bytes, "must not be negative");
  if (config.host_bytes < 0)
    return field("host_bytes", config.host_bytes, "must not be negative");
  if (config.gemm != PLR_GEMM_ONEDNN && config.gemm != PLR_GEMM_REFERENCE)
    return field("gemm", config.gemm, "must be 0 (oneDNN) or 1 (reference)");
  if (config.poison != 0 && config.poison != 1)
    return field("poison", config.poison, "must be 0 or 1");
  if (config.trace != 0 && config.trace != 1)
    return field("trace", config.trace, "must be 0 or 1");
  if (config.ranks > 1 && !config.transport)
    return field("ranks", config.ranks, "there is no transport to connect them");
  if (config.transport && config.transport->getRanks() != config.ranks)
    return field("ranks", config.ranks,
                 ("its transport is for " + std::to_string(config.transport->getRanks())).c_str());
  return {};
}

static plr_status createContext(const plr_config *config, plr_context **context, std::string &message) {
  if (!config || !context) {
    message = config ? "there is no place for the context: the pointer is null" : "the configuration is null";
    return PLR_INVALID_ARGUMENT;
  }
  message = checkConfig(*config);
  if (!message.empty())
    return PLR_INVALID_ARGUMENT;
  std::string rank = "rank " + std::to_string(config->rank) + ": ";
  try {
    std::array<std::unique_ptr<Space>, PLR_SPACES> spaces;
    const int64_t limits[PLR_SPACES] = {config->device_bytes, config->host_bytes};
    for (plr_space kind = 0; kind < PLR_SPACES; ++kind) {
      spaces[kind] = Space::create(kind, limits[kind], message);
      if (!spaces[kind]) {
        message = rank + message;
        return PLR_OUT_OF_MEMORY;
      }
    }
    auto made = std::make_unique<plr_context>(*config, std::move(spaces));
    if (config->transport)
      message = config->transport->join(*made);
    if (!message.empty()) {
      message = rank + message;
      return PLR_INVALID_ARGUMENT;
    }
    *context = made.release();
    return PLR_OK;
  } catch (const std::exception &exception) {
    message = rank + exception.what();
    return PLR_INTERNAL;
  }
}

extern "C" plr_status plr_context_create(const plr_config *config, plr_context **context, char *message, size_t size) {
  if (context)
    *context = nullptr;
  std::string text;
  plr_status status = createContext(config, context, text);
  if (status != PLR_OK && message && size > 0)
    std::snprintf(message, size, "plr_context_create: %s", text.c_str());
  return status;
}

extern "C" void plr_context_destroy(plr_context *context) { delete context; }

extern "C" plr_status plr_context_error(plr_context *context, const char **message) {
  if (message)
    *message = context ? "" : "the context is null";
  plr_status status = guard(context, "plr_context_error", [] { return PLR_OK; });
  if (context && message)
    *message = context->error.getMessage();
  return status;
}

extern "C" void plr_interrupt(plr_context *context) {
  if (context)
    context->error.interrupt();
}

extern "C" int64_t plr_trace(plr_context *context, int64_t first, plr_span *spans, int64_t capacity) {
  if (!context)
    return 0;
  context->drain();
  return context->trace.read(first < 0 ? 0 : first, spans, spans ? capacity : 0);
}

extern "C" void plr_trace_clear(plr_context *context) {
  if (!context)
    return;
  context->drain();
  context->trace.clear();
}
