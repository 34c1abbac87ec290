//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Output.h"
#include "plateau/Run/Error.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir::plateau;
using llvm::sys::fs::file_type;

/// Prints, and tells when not everything arrived.
static llvm::Error printTo(llvm::raw_fd_ostream &os, llvm::function_ref<void(llvm::raw_ostream &)> print) {
  print(os);
  os.flush();
  if (!os.has_error())
    return llvm::Error::success();
  std::string why = os.error().message();
  os.clear_error(); // Or the stream's destructor ends the program.
  return run::makeError("{0}", why);
}

static llvm::Error replaceFile(llvm::StringRef target, llvm::function_ref<void(llvm::raw_ostream &)> print) {
  auto temporary =
      llvm::sys::fs::TempFile::create(target + ".%%%%%%.partial", llvm::sys::fs::all_read | llvm::sys::fs::all_write);
  if (!temporary)
    return temporary.takeError();
  llvm::raw_fd_ostream os(temporary->FD, /*shouldClose=*/false);
  if (llvm::Error error = printTo(os, print))
    return llvm::joinErrors(std::move(error), temporary->discard());
  return temporary->keep(target);
}

static llvm::Error write(llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> print) {
  if (path == "-")
    return printTo(llvm::outs(), print);
  llvm::sys::fs::file_status status;
  std::error_code code = llvm::sys::fs::status(path, status);
  if (code == std::errc::no_such_file_or_directory)
    return replaceFile(path, print);
  if (code)
    return llvm::errorCodeToError(code);
  if (status.type() == file_type::regular_file) {
    llvm::SmallString<128> target; // A link stays one: the file it leads to is replaced.
    if (std::error_code failure = llvm::sys::fs::real_path(path, target))
      return llvm::errorCodeToError(failure);
    return replaceFile(target, print);
  }
  llvm::raw_fd_ostream os(path, code, llvm::sys::fs::CD_OpenExisting);
  return code ? llvm::errorCodeToError(code) : printTo(os, print);
}

llvm::Error compile::writeOutput(llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> print) {
  llvm::Error error = write(path, print);
  if (!error)
    return error;
  return run::makeError("{0}: cannot be written: {1}", path == "-" ? "the standard output" : path,
                        llvm::toString(std::move(error)));
}
