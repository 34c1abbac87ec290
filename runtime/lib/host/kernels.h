//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The kernels of the host backend: plain functions on dense row-major memory, single-threaded, deterministic. The calls
// of runtime.h enqueue them on a lane. Parameters mean what they mean there.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_KERNELS_H
#define PLATEAU_RUNTIME_HOST_KERNELS_H

#include "plateau/runtime.h"
#include <string>

namespace plateau::rt::host {

/// What is wrong with the data a kernel met ("row 3 has token id 17000, but the table has 16384 rows"); empty when
/// nothing is.
using Fault = std::string;

Fault embedding(plr_type type, int64_t rows, int64_t columns, int64_t vocabulary, const void *table, const int32_t *ids,
                void *result);
Fault embeddingGrad(plr_type type, int64_t rows, int64_t columns, int64_t vocabulary, const void *cotangent,
                    const int32_t *ids, void *result, void *workspace);
Fault embeddingShard(plr_type type, int64_t rows, int64_t columns, int64_t shardRows, int64_t vocabulary,
                     const int32_t *first, const void *shard, const int32_t *ids, void *result);
void embeddingShardGrad(plr_type type, int64_t rows, int64_t columns, int64_t shardRows, const int32_t *first,
                        const void *cotangent, const int32_t *ids, float *sums);
void rmsNorm(plr_type type, int64_t rows, int64_t columns, float epsilon, const void *input, const void *weight,
             void *output, float *inverse);
void rmsNormGrad(plr_type type, int64_t rows, int64_t columns, const void *cotangent, const void *input,
                 const void *weight, const float *inverse, void *inputGrad, void *weightGrad, void *workspace);
void rotaryTable(int64_t rows, int64_t half, double theta, const int32_t *positions, float *cos, float *sin);
void rotary(plr_type type, int64_t rows, int64_t heads, int64_t half, bool inverse, const void *input, const float *cos,
            const float *sin, void *result);
Fault attention(plr_type type, int64_t rows, int64_t queryHeads, int64_t keyHeads, int64_t headSize, float scale,
                const void *query, const void *key, const void *value, const int32_t *starts, void *output, float *lse,
                void *workspace);
Fault attentionGrad(plr_type type, int64_t rows, int64_t queryHeads, int64_t keyHeads, int64_t headSize, float scale,
                    const void *cotangent, const void *query, const void *key, const void *value, const int32_t *starts,
                    const void *output, const float *lse, void *queryGrad, void *keyGrad, void *valueGrad,
                    void *workspace);
void logSoftmax(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, const float *input, const float *bias,
                float *result, float *lse);
void logSoftmaxGrad(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, const float *cotangent,
                    const float *lseCotangent, const float *output, const float *lse, float *result, float *biasGrad);
void countLabels(int64_t rows, int32_t ignoreIndex, const int32_t *labels, float *result);
/// What is wrong with the first label that is neither ignored nor in the vocabulary.
Fault checkLabels(const plr_vocabulary &vocabulary, int64_t rows, const int32_t *labels);
Fault nll(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, const float *logProbs, const float *lse,
          const int32_t *labels, float *losses);
void nllGrad(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, const float *cotangents, const float *lse,
             const int32_t *labels, float *logProbsGrad, float *lseGrad);
void meanLoss(int64_t rows, const float *losses, const float *weights, const float *count, float *result);
void meanLossGrad(int64_t rows, const float *cotangent, const float *weights, const float *count, float *result);
void foldLogits(const plr_vocabulary &vocabulary, int64_t rows, int64_t columns, int64_t column, const int32_t *first,
                const float *logits, const float *bias, const int32_t *labels, float *state);
void mergeStates(const plr_vocabulary &vocabulary, int64_t parts, int64_t rows, const float *states, float *result);
Fault finishLosses(const plr_vocabulary &vocabulary, int64_t rows, const float *state, const int32_t *labels,
                   float *losses, float *lse);
void logitsGrad(const plr_vocabulary &vocabulary, plr_type resultType, int64_t rows, int64_t columns, int64_t column,
                const int32_t *first, const float *logits, const float *bias, const int32_t *labels, const float *lse,
                const float *cotangents, void *result);
void columnSums(plr_type type, int64_t rows, int64_t columns, const void *input, float *sums);
void sumSquares(plr_type type, int64_t segments, const int64_t *ranges, const void *gradients, double *result);
void gradNorm(int64_t count, const double *const *squares, float *norm);
void clipFactor(float maxNorm, const float *norm, float *factor);
void adamw(plr_type type, plr_type gradientType, int64_t segments, const int64_t *ranges, double beta1, double beta2,
           double epsilon, double weightDecay, void *parameters, const void *gradients, float *first, float *second,
           float *master, const float *factor, const float *learningRate, const int32_t *step);
void route(const plr_routing &routing, int64_t tokens, const float *logits, const float *bias, int32_t *ids,
           float *weights, int32_t *counts);
Fault routeGrad(const plr_routing &routing, int64_t tokens, const float *cotangent, const float *logits,
                const int32_t *ids, float *logitsGrad);
Fault balanceLoss(const plr_balance &balance, int64_t tokens, const float *logits, const int32_t *counts,
                  const int32_t *ids, float *result);
Fault balanceLossGrad(const plr_balance &balance, int64_t tokens, const float *cotangent, const float *logits,
                      const int32_t *counts, const int32_t *ids, float *logitsGrad);
void zLoss(int64_t rows, int64_t experts, int64_t tokens, float coefficient, const float *logits, float *result);
void zLossGrad(int64_t rows, int64_t experts, int64_t tokens, float coefficient, const float *cotangent,
               const float *logits, float *logitsGrad);
void updateBias(int64_t experts, float rate, const int32_t *counts, const float *factor, float *bias);

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_KERNELS_H
