//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The processor that code is made for.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_COMPILE_TARGET_H
#define PLATEAU_COMPILE_TARGET_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>
#include <string>

namespace mlir::plateau::compile {

struct Target {
  std::unique_ptr<llvm::TargetMachine> machine;
  std::string features; ///< Instruction sets beyond x86-64, with commas between them.

  /// This machine's processor, or any x86-64.
  static llvm::Expected<Target> create(bool isNative);

  /// The bytes of an object file.
  llvm::Expected<SmallVector<char, 0>> emitObject(llvm::Module &module) const;
};

} // namespace mlir::plateau::compile

#endif // PLATEAU_COMPILE_TARGET_H
