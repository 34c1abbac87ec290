//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "WriteModule.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace mlir::plateau::importer;

static llvm::Error cannotWrite(StringRef name, const Twine &why) {
  return llvm::createStringError(name + ": error: cannot be written: " + why);
}

llvm::Error mlir::plateau::importer::flush(llvm::raw_fd_ostream &os, StringRef name) {
  os.flush();
  if (!os.has_error())
    return llvm::Error::success();
  std::string why = os.error().message();
  os.clear_error();
  return cannotWrite(name, why);
}

/// Writes `module` to a file beside `target` that takes its name only once it is whole: a failure leaves what was
/// there.
static llvm::Error replaceFile(ModuleOp module, StringRef target, StringRef name) {
  auto temporary =
      llvm::sys::fs::TempFile::create(target + ".%%%%%%%%", llvm::sys::fs::all_read | llvm::sys::fs::all_write);
  if (!temporary)
    return cannotWrite(name, llvm::toString(temporary.takeError()));
  llvm::raw_fd_ostream os(temporary->FD, /*shouldClose=*/false);
  module.print(os, OpPrintingFlags().enableDebugInfo());
  if (llvm::Error error = flush(os, name)) {
    llvm::consumeError(temporary->discard());
    return error;
  }
  if (llvm::Error error = temporary->keep(target))
    return cannotWrite(name, llvm::toString(std::move(error)));
  return llvm::Error::success();
}

llvm::Error mlir::plateau::importer::writeModule(ModuleOp module, StringRef path) {
  if (path == "-") {
    module.print(llvm::outs(), OpPrintingFlags().enableDebugInfo());
    return flush(llvm::outs(), standardOutput);
  }
  llvm::sys::fs::file_status status;
  std::error_code missing = llvm::sys::fs::status(path, status);
  if (missing == std::errc::no_such_file_or_directory)
    return replaceFile(module, path, path);
  if (missing)
    return cannotWrite(path, missing.message());
  if (status.type() == llvm::sys::fs::file_type::regular_file) {
    // A link stays one: the file it leads to is replaced.
    llvm::SmallString<128> target;
    if (std::error_code code = llvm::sys::fs::real_path(path, target))
      return cannotWrite(path, code.message());
    return replaceFile(module, target, path);
  }
  // A pipe or a device is written to; a file must not take its name.
  std::error_code code;
  llvm::raw_fd_ostream os(path, code, llvm::sys::fs::CD_OpenExisting);
  if (code)
    return cannotWrite(path, code.message());
  module.print(os, OpPrintingFlags().enableDebugInfo());
  return flush(os, path);
}
