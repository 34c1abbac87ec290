//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Passes that only tests use.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_LIB_SCHED_TESTPASSES_H
#define PLATEAU_TEST_LIB_SCHED_TESTPASSES_H

namespace mlir::plateau {

void registerSchedTestPasses();

} // namespace mlir::plateau

#endif // PLATEAU_TEST_LIB_SCHED_TESTPASSES_H
