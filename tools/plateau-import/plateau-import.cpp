//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a model's config.json to the program of its training step.
//===----------------------------------------------------------------------===//

#include "plateau/Import/Main.h"

int main(int argc, char **argv) { return mlir::plateau::importer::importMain(argc, argv); }
