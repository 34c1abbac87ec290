//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/gemm.h"
#include "host/threads.h"
#include <array>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

using namespace plateau::rt::host;

namespace {

struct ShapeHash {
  size_t operator()(const GemmShape &shape) const {
    size_t flags =
        shape.transposeA | shape.transposeB << 1 | shape.accumulate << 2 | shape.type << 3 | shape.resultType << 4;
    size_t hash = flags;
    for (int64_t size : {shape.m, shape.n, shape.k})
      hash = (hash ^ static_cast<size_t>(size)) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
  }
};

/// The objects are kept, so that an execution sets four addresses and does nothing else.
class OneDnnGemm final : public PreparedGemm {
public:
  OneDnnGemm(const dnnl::matmul &primitive, const dnnl::matmul::primitive_desc &description, const dnnl::engine &engine)
      : primitive(primitive), stream(engine), a(description.src_desc(), engine, DNNL_MEMORY_NONE),
        b(description.weights_desc(), engine, DNNL_MEMORY_NONE), c(description.dst_desc(), engine, DNNL_MEMORY_NONE),
        scratch(description.scratchpad_desc(), engine, DNNL_MEMORY_NONE),
        scratchBytes(static_cast<int64_t>(description.scratchpad_desc().get_size())),
        arguments{{{DNNL_ARG_SRC, a.get()},
                   {DNNL_ARG_WEIGHTS, b.get()},
                   {DNNL_ARG_DST, c.get()},
                   {DNNL_ARG_SCRATCHPAD, scratch.get()}}} {}

  int64_t getScratchBytes() const override { return scratchBytes; }

  // The C interface: the C++ one makes a map and a vector at each execution.
  const char *run(const void *aData, const void *bData, void *cData, void *scratchData) override {
    dnnl_status_t status = dnnl_memory_set_data_handle(a.get(), const_cast<void *>(aData));
    if (status == dnnl_success)
      status = dnnl_memory_set_data_handle(b.get(), const_cast<void *>(bData));
    if (status == dnnl_success)
      status = dnnl_memory_set_data_handle(c.get(), cData);
    if (status == dnnl_success && scratchBytes > 0)
      status = dnnl_memory_set_data_handle(scratch.get(), scratchData);
    if (status == dnnl_success)
      status =
          dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(arguments.size()), arguments.data());
    return status == dnnl_success ? nullptr : "oneDNN's matmul primitive could not be run";
  }

private:
  dnnl::matmul primitive;
  dnnl::stream stream;
  dnnl::memory a, b, c, scratch;
  int64_t scratchBytes;
  std::array<dnnl_exec_arg_t, 4> arguments;
};

} // namespace

/// Sizes are static: with sizes given at run time a row's bits change with the number of rows.
static dnnl::matmul::primitive_desc describe(const GemmShape &shape, const dnnl::engine &engine) {
  using Tag = dnnl::memory::format_tag;
  auto matrix = [](int64_t rows, int64_t columns, plr_type type, bool transposed) {
    return dnnl::memory::desc({rows, columns},
                              type == PLR_BF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32,
                              transposed ? Tag::ba : Tag::ab);
  };
  // One row or column lies the same way either way, and the library takes both for one product: whichever was made
  // first would decide about the scratch memory of both.
  const bool transposeA = shape.transposeA && shape.m > 1 && shape.k > 1;
  const bool transposeB = shape.transposeB && shape.k > 1 && shape.n > 1;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (shape.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  dnnl::matmul::desc operation(matrix(shape.m, shape.k, shape.type, transposeA),
                               matrix(shape.k, shape.n, shape.type, transposeB),
                               matrix(shape.m, shape.n, shape.resultType, false));
  return dnnl::matmul::primitive_desc(operation, attributes, engine);
}

struct GemmCache::Implementation {
  /// A primitive serves all lanes; addresses are set per lane.
  struct Entry {
    dnnl::matmul::primitive_desc description;
    dnnl::matmul primitive;
    std::array<std::unique_ptr<OneDnnGemm>, PLR_LANES> ofLane;
    bool isKept = false;
  };

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::unordered_map<GemmShape, Entry, ShapeHash> entries;
  size_t kept = 0;
};

GemmCache::GemmCache() : implementation(std::make_unique<Implementation>()) {}

GemmCache::~GemmCache() = default;

PreparedGemm *GemmCache::get(const GemmShape &shape, plr_lane_kind lane, bool keep, std::string &message) {
  Implementation::Entry &entry = implementation->entries[shape];
  if (keep && !entry.isKept) {
    entry.isKept = true;
    ++implementation->kept;
  }
  std::unique_ptr<OneDnnGemm> &gemm = entry.ofLane[lane];
  if (gemm)
    return gemm.get();
  try {
    // A primitive is made for as many threads as the thread that makes it would use.
    OneThreadScope scope;
    if (!entry.primitive) {
      entry.description = describe(shape, implementation->engine);
      entry.primitive = dnnl::matmul(entry.description);
    }
    gemm = std::make_unique<OneDnnGemm>(entry.primitive, entry.description, implementation->engine);
    return gemm.get();
  } catch (const dnnl::error &error) {
    message = std::string("oneDNN: ") + error.what();
    return nullptr;
  }
}

struct GemmScratchSizes::Implementation {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
};

GemmScratchSizes::GemmScratchSizes() = default;

GemmScratchSizes::~GemmScratchSizes() = default;

int64_t GemmScratchSizes::get(const GemmShape &shape) {
  try {
    OneThreadScope scope; // As when the product is made.
    if (!implementation)
      implementation = std::make_unique<Implementation>();
    return static_cast<int64_t>(describe(shape, implementation->engine).scratchpad_desc().get_size());
  } catch (const dnnl::error &) {
    return -1;
  }
}

size_t GemmCache::getSize() const { return implementation->entries.size(); }

void GemmCache::limit(size_t most) {
  auto &entries = implementation->entries;
  if (entries.size() - implementation->kept <= most)
    return;
  for (auto entry = entries.begin(); entry != entries.end();)
    entry = entry->second.isKept ? std::next(entry) : entries.erase(entry);
}
