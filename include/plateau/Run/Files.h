//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Files that a run reads and writes, and the standard output.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_FILES_H
#define PLATEAU_RUN_FILES_H

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>
#include <string>

namespace mlir::plateau::run {

/// The bytes of a file or of a pipe. A device, which may never end, is refused. The error says why, without the name.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> readFile(llvm::StringRef path);

/// The name under which a file is put in the place of `path`: that of the file a link leads to. Fails when there is
/// something that is no file: a device or a pipe must not become one.
llvm::Expected<std::string> getWritePath(llvm::StringRef path);

/// Fails when no file can be written as `path`. Leaves nothing behind.
llvm::Error checkWritable(llvm::StringRef path);

/// Flushes `os`. Fails when it is the standard output and something written did not arrive; that is told once.
llvm::Error flush(llvm::raw_ostream &os);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_FILES_H
