//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// linalg.matmul as a product with transposed operands.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INTERFACES_MATMUL_H
#define PLATEAU_INTERFACES_MATMUL_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::plateau {

/// Which operands of `c[m,n] = Σ op(a)[m,k] · op(b)[k,n]` are stored transposed.
struct MatmulForm {
  bool transposeA = false, transposeB = false;

  /// The form of `op`; failure when its indexing maps say anything else (a broadcast, a transposed result).
  static FailureOr<MatmulForm> get(linalg::MatmulOp op);
};

/// Whether `op` starts from zeros, so that its product overwrites its result.
bool isOnZeros(linalg::MatmulOp op);

/// `op(a) · op(b)` in f32, for 2-D tensors of one element type, added to the f32 tensor `sums`; without it, on zeros.
Value createMatmul(OpBuilder &builder, Location loc, Value a, Value b, MatmulForm form, Value sums = {});

} // namespace mlir::plateau

#endif // PLATEAU_INTERFACES_MATMUL_H
