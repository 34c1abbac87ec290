//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Files.h"
#include "plateau/Run/Error.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir::plateau;
using namespace mlir::plateau::run;
using llvm::sys::fs::file_type;

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> run::readFile(llvm::StringRef path) {
  llvm::sys::fs::file_status status;
  if (std::error_code code = llvm::sys::fs::status(path, status))
    return makeError("{0}", code.message());
  if (status.type() == file_type::character_file || status.type() == file_type::block_file)
    return makeError("it is a device, not a file");
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return makeError("{0}", file.getError().message());
  return std::move(*file);
}

llvm::Expected<std::string> run::getWritePath(llvm::StringRef path) {
  auto refuse = [&](const llvm::Twine &why) { return makeError("{0}: cannot be written: {1}", path, why.str()); };
  llvm::sys::fs::file_status status;
  std::error_code code = llvm::sys::fs::status(path, status);
  if (code == std::errc::no_such_file_or_directory)
    return path.str();
  if (code)
    return refuse(code.message());
  if (status.type() == file_type::directory_file)
    return refuse("it is a directory");
  if (status.type() != file_type::regular_file)
    return refuse("it is a device or a pipe, and a file would take its place");
  llvm::SmallString<128> target;
  if (std::error_code failure = llvm::sys::fs::real_path(path, target))
    return refuse(failure.message());
  return target.str().str();
}

llvm::Error run::checkWritable(llvm::StringRef path) {
  auto target = getWritePath(path);
  if (!target)
    return target.takeError();
  llvm::SmallString<128> temporary;
  if (auto code = llvm::sys::fs::createUniqueFile(*target + ".%%%%%%.partial", temporary))
    return makeError("{0}: cannot be written: {1}", path, code.message());
  llvm::sys::fs::remove(temporary);
  return llvm::Error::success();
}

llvm::Error run::flush(llvm::raw_ostream &os) {
  os.flush();
  llvm::raw_fd_ostream &file = llvm::outs();
  if (&os != &file || !file.has_error())
    return llvm::Error::success();
  std::string why = file.error().message();
  file.clear_error(); // Or the stream's destructor ends the program.
  return makeError("the standard output cannot be written: {0}", why);
}
