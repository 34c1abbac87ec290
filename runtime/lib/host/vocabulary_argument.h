//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The checks that all calls of a vocabulary loss make of what it does.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_VOCABULARYARGUMENT_H
#define PLATEAU_RUNTIME_HOST_VOCABULARYARGUMENT_H

#include "host/call.h"

namespace plateau::rt::host {

/// A copy for the task, since the caller's may be gone when it runs; refused, with the numbers, when it is no loss.
plr_vocabulary takeVocabulary(Call &call, const plr_vocabulary *vocabulary);

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_VOCABULARYARGUMENT_H
