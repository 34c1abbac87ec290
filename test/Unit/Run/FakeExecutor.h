//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// An executor that runs a C++ function on its buffers, a step for it, and files to run on.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_RUN_FAKEEXECUTOR_H
#define PLATEAU_TEST_UNIT_RUN_FAKEEXECUTOR_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "plateau/Execution/StepExecutor.h"
#include "plateau/InitAllDialects.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/StepSignature.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <functional>

namespace mlir::plateau::run {

/// Buffers of one rank.
struct FakeBuffers {
  std::vector<std::vector<char>> arguments, results;

  template <typename Number>
  llvm::MutableArrayRef<Number> argument(unsigned index) {
    return {reinterpret_cast<Number *>(arguments[index].data()), arguments[index].size() / sizeof(Number)};
  }
  template <typename Number>
  llvm::MutableArrayRef<Number> result(unsigned index) {
    return {reinterpret_cast<Number *>(results[index].data()), results[index].size() / sizeof(Number)};
  }
};

class FakeExecutor : public StepExecutor {
public:
  using Body = std::function<llvm::Error(FakeExecutor &, int rank, FakeBuffers &)>;

  FakeExecutor(func::FuncOp function, int ranks, Body body) : StepExecutor(function, ranks), body(std::move(body)) {
    for (int rank = 0; rank < ranks; ++rank) {
      FakeBuffers &own = buffers.emplace_back();
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        own.arguments.emplace_back(getArgumentBytes(i), '\xFF');
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        own.results.emplace_back(getResultBytes(i), '\xFF');
    }
  }

  llvm::Error writeArgument(int rank, unsigned index, llvm::ArrayRef<char> bytes) override {
    return copy(bytes, buffers[rank].arguments[index]);
  }
  llvm::Error readArgument(int rank, unsigned index, llvm::MutableArrayRef<char> bytes) override {
    return copy(buffers[rank].arguments[index], bytes);
  }
  llvm::Error readResult(int rank, unsigned index, llvm::MutableArrayRef<char> bytes) override {
    return copy(buffers[rank].results[index], bytes);
  }
  llvm::Error run() override {
    ++runs;
    for (int rank = 0; rank < ranks; ++rank) {
      if (interrupted)
        return makeError("interrupted");
      if (auto error = body(*this, rank, buffers[rank]))
        return error;
    }
    return llvm::Error::success();
  }
  plr_space_report getMemoryReport(int rank, plr_space space) override {
    plr_space_report report = {};
    if (space == PLR_DEVICE)
      report.peak_bytes = report.at_peak_bytes[PLR_DENSE] = report.component_peak_bytes[PLR_DENSE] = (rank + 1) << 20;
    report.live_bytes = int64_t(rank + 1) << (space == PLR_DEVICE ? 10 : 5);
    return report;
  }
  void interrupt() override { interrupted = true; }

  std::vector<FakeBuffers> buffers;
  int runs = 0;
  bool interrupted = false;

private:
  static llvm::Error copy(llvm::ArrayRef<char> from, llvm::MutableArrayRef<char> to) {
    if (from.size() != to.size())
      return makeError("{0} bytes for a buffer of {1}", from.size(), to.size());
    llvm::copy(from, to.begin());
    return llvm::Error::success();
  }

  Body body;
};

/// The text of a step of two parameters in a padded group, f32 or bf16. The body only has the right types.
std::string getStepText(bool isBF16 = false, int ranks = 1, int tokens = 4, int sequence = 4);

/// A context, a folder that vanishes, and the diagnostics so far.
class RunTest : public testing::Test {
protected:
  RunTest();
  ~RunTest() override;

  OwningOpRef<ModuleOp> parse(llvm::StringRef text);
  std::string getPath(llvm::StringRef name) const { return folder + "/" + name.str(); }
  std::string writeFile(llvm::StringRef name, llvm::StringRef contents) const;
  std::string writeIds(llvm::StringRef name, const std::vector<uint32_t> &ids) const;
  std::string readFile(llvm::StringRef name) const;
  std::vector<std::string> listFiles() const;

  static DialectRegistry &getRegistry();

  MLIRContext context;
  std::string folder, diagnostics;
  ScopedDiagnosticHandler handler;
};

/// The text of an error, "" of a success.
inline std::string getText(llvm::Error error) { return llvm::toString(std::move(error)); }
template <typename T>
std::string getText(llvm::Expected<T> value) {
  return value ? "" : llvm::toString(value.takeError());
}

} // namespace mlir::plateau::run

#endif // PLATEAU_TEST_UNIT_RUN_FAKEEXECUTOR_H
