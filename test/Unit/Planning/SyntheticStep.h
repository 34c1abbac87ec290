//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_PLANNING_SYNTHETICSTEP_H
#define PLATEAU_TEST_UNIT_PLANNING_SYNTHETICSTEP_H

#include "plateau/Planning/ArenaProblem.h"

namespace mlir::plateau::planning {

struct SyntheticOptions {
  int layers = 12;
  bool offload = false;
  bool gradientSlots = false;
};

/// A training step of so many layers with experts, each a checkpoint: its input stays until its backward pass, which
/// computes the rest again. About 200 buffers a layer.
///
/// On two lanes the sums of gradients over ranks run beside the exchange of rows. With `offload` there are five: these
/// sums have their own, and the inputs leave for the host on one and come back on another; compute waits for what left
/// it two layers before.
ArenaProblem makeSyntheticStep(SyntheticOptions options);

} // namespace mlir::plateau::planning

#endif // PLATEAU_TEST_UNIT_PLANNING_SYNTHETICSTEP_H
