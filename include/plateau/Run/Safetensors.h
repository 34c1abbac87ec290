//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Reading and writing safetensors files: the length of a JSON header (8 bytes, little-endian), the header, the data.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_SAFETENSORS_H
#define PLATEAU_RUN_SAFETENSORS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>
#include <string>
#include <vector>

namespace mlir::plateau::run {

/// One tensor of a file. `begin` and `end` are offsets in the data.
struct SafetensorsEntry {
  std::string name;
  std::string dtype; ///< "F32", "BF16", "I64", …
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;
};

/// Bytes of an element of a dtype, 0 for a dtype that the format does not know.
int64_t getDtypeBytes(llvm::StringRef dtype);

/// A file mapped into memory, its header checked: sizes agree with shapes, and the tensors cover the data without
/// overlap or gap.
class SafetensorsReader {
public:
  static llvm::Expected<SafetensorsReader> open(llvm::StringRef path);

  llvm::StringRef getPath() const { return path; }
  llvm::ArrayRef<SafetensorsEntry> getEntries() const { return entries; }
  /// Null when there is no tensor of that name.
  const SafetensorsEntry *find(llvm::StringRef name) const;
  llvm::ArrayRef<char> getData(const SafetensorsEntry &entry) const;

private:
  std::string path;
  std::unique_ptr<llvm::MemoryBuffer> file;
  int64_t dataOffset = 0;
  std::vector<SafetensorsEntry> entries;
  llvm::StringMap<size_t> byName;
};

/// Writes a file under another name and gives it its own when it is complete, so that a reader never sees half of it.
class SafetensorsWriter {
public:
  /// The tensors in the order in which `append` will bring their bytes; offsets are filled in.
  static llvm::Expected<SafetensorsWriter> create(llvm::StringRef path, std::vector<SafetensorsEntry> entries);
  SafetensorsWriter(SafetensorsWriter &&) = default;
  ~SafetensorsWriter();

  void append(llvm::ArrayRef<char> bytes);
  llvm::Error finish();

private:
  SafetensorsWriter() = default;

  std::string path, temporary;
  std::unique_ptr<llvm::raw_fd_ostream> stream;
  int64_t missingBytes = 0;
};

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_SAFETENSORS_H
