//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Programs written as text, for the tests of the sched level.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_SCHED_SCHEDTEST_H
#define PLATEAU_TEST_UNIT_SCHED_SCHEDTEST_H

#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "plateau/Dialect/Sched/IR/Sched.h"
#include <gtest/gtest.h>

namespace mlir::plateau::sched {

class SchedTest : public testing::Test {
protected:
  SchedTest() {
    context.loadDialect<SchedDialect, memref::MemRefDialect, shard::ShardDialect>();
    context.disableMultithreading();
  }

  /// The program with this body on lanes compute, comm, h2d and d2h. `#t` is a tag; `aliases` may define more.
  ProgramOp parse(llvm::StringRef body, llvm::StringRef aliases = "") {
    std::string text =
        aliases.str() +
        "#t = #sched.tag<\"op\", dense, forward>\nshard.grid @world(shape = 2)\n"
        "sched.program @p ranks(2) {\nsched.lane compute\nsched.lane comm\nsched.lane h2d\nsched.lane d2h\n" +
        body.str() + "\n}\n";
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    return module ? *module->getOps<ProgramOp>().begin() : ProgramOp();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace mlir::plateau::sched

#endif // PLATEAU_TEST_UNIT_SCHED_SCHEDTEST_H
