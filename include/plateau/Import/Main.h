//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line of plateau-import.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_IMPORT_MAIN_H
#define PLATEAU_IMPORT_MAIN_H

namespace mlir::plateau::importer {

/// Runs plateau-import. Gives its exit code: 0 done, 1 input refused, 2 bad command line.
int importMain(int argc, char **argv);

} // namespace mlir::plateau::importer

#endif // PLATEAU_IMPORT_MAIN_H
