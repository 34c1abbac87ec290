//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The instruction sets that kernels are compiled for, and the choice among them.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_SIMD_VARIANTS_H
#define PLATEAU_RUNTIME_HOST_SIMD_VARIANTS_H

#include "plateau/runtime.h"

namespace plateau::rt::host {

struct Variant;

/// What is the same for all elements in one AdamW update; each computed in double and rounded once.
struct AdamWNumbers {
  float factor;       ///< Of the gradient.
  float keep;         ///< 1 − learning rate · weight decay; 1 where there is no decay.
  float beta1, rest1; ///< rest1 = 1 − beta1.
  float beta2, rest2;
  float rate;       ///< learning rate / (1 − beta1^t).
  float correction; ///< sqrt(1 − beta2^t).
  float epsilon;
};

namespace baseline {
#include "declarations.inc"
} // namespace baseline
namespace avx2 {
#include "declarations.inc"
} // namespace avx2
namespace avx512 {
#include "declarations.inc"
} // namespace avx512

/// The kernels compiled for one instruction set.
struct Variant {
  const char *name;
  decltype(&baseline::embeddingSum) embeddingSum;
  decltype(&baseline::rmsNorm) rmsNorm;
  decltype(&baseline::rmsNormGrad) rmsNormGrad;
  decltype(&baseline::rotary) rotary;
  decltype(&baseline::attention) attention;
  decltype(&baseline::attentionGrad) attentionGrad;
  decltype(&baseline::logSoftmax) logSoftmax;
  decltype(&baseline::logSoftmaxGrad) logSoftmaxGrad;
  decltype(&baseline::sumOfRow) sumOfRow;
  decltype(&baseline::foldLogits) foldLogits;
  decltype(&baseline::logitsGrad) logitsGrad;
  decltype(&baseline::sumOfSquares) sumOfSquares;
  decltype(&baseline::adamw) adamw;
  decltype(&baseline::swiglu) swiglu;
  decltype(&baseline::swigluGrad) swigluGrad;
  decltype(&baseline::scaleRows) scaleRows;
  decltype(&baseline::rowDot) rowDot;
  decltype(&baseline::columnSums) columnSums;
  decltype(&baseline::roundSums) roundSums;
  decltype(&baseline::exponentials) exponentials;
  decltype(&baseline::hyperbolicTangents) hyperbolicTangents;
};

/// Number of variants; number `index`, widest first, null when this machine cannot run it.
constexpr int variantCount = 3;
const Variant *getVariant(int index);

/// The widest variant that this machine can run; the same at every call.
const Variant &bestVariant();

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_SIMD_VARIANTS_H
