//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// From functions on tensors to programs whose memory is planned and proven, and from those to LLVM.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_PIPELINES_SCHEDULE_H
#define PLATEAU_PIPELINES_SCHEDULE_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::plateau {

struct ScheduleOptions : PassPipelineOptions<ScheduleOptions> {
  Option<bool> referenceGemm{*this, "reference-gemm", llvm::cl::init(false),
                             llvm::cl::desc("Scratch memory for the reference products instead of the library's")};
  Option<int64_t> hbmBytes{*this, "hbm-bytes", llvm::cl::init(-1),
                           llvm::cl::desc("Budget of the device space of a rank (-1: none)")};
  Option<int64_t> hostBytes{*this, "host-bytes", llvm::cl::init(-1),
                            llvm::cl::desc("Budget of the host space of a rank (-1: none)")};
  Option<int64_t> inFlight{
      *this, "in-flight", llvm::cl::init(0),
      llvm::cl::desc("Iterations of a loop to overlap: forward of one micro-batch beside backward of "
                     "another (0: as the loops say)")};
};

/// Adds to `manager` (on modules) what turns every public function into a verified program.
void buildSchedulePipeline(OpPassManager &manager, const ScheduleOptions &options);

/// Adds to `manager` (on modules) what lowers verified programs to LLVM.
void buildLowerSchedulePipeline(OpPassManager &manager);

/// Registers `plateau-schedule` and `plateau-lower-schedule`.
void registerSchedulePipelines();

} // namespace mlir::plateau

#endif // PLATEAU_PIPELINES_SCHEDULE_H
