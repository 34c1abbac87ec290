//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Digests.h"
#include "plateau/Run/Error.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

/// The first rank that holds something else than rank `first`, of those `stride` apart from it; none when all hold the
/// same. `part` is on rank `first`.
static std::optional<int> findOther(const Executor &executor, ResultPart part, int stride) {
  uint64_t expected = executor.getPartsDigest(part);
  for (part.rank += stride; part.rank < executor.step->getRanks(); part.rank += stride)
    if (executor.getPartsDigest(part) != expected)
      return part.rank;
  return std::nullopt;
}

/// The parts of the whole tensors of a group, in order.
static llvm::Expected<std::vector<ResultPart>> listParts(const Executor &executor, const StepSignature &signature,
                                                         const StateGroup &group) {
  std::vector<ResultPart> parts;
  for (moe::MemberAttr member : group.layout.getMembers()) {
    auto count = static_cast<int>(signature.getParts(member));
    for (int rank = 0; rank < count; ++rank) {
      int64_t elements = signature.getPart(member, rank).elements;
      if (elements == 0)
        continue;
      parts.push_back({rank, group.result, member.getOffset(), elements});
      if (std::optional<int> other = findOther(executor, parts.back(), count))
        return makeError("ranks {0} and {1} hold the same part of '{2}' and give it different {3}", rank, *other,
                         member.getParameter().getName(), moe::stringifyRole(group.role));
    }
  }
  return parts;
}

llvm::Expected<std::vector<ResultDigest>> run::getDigests(const Executor &executor, const StepSignature &signature) {
  func::FuncOp function = signature.function;
  std::vector<std::vector<ResultPart>> parts(function.getNumResults());
  // What differs follows from the gradients: they are the first to be told of.
  llvm::SmallVector<const StateGroup *> groups = {&signature.gradients};
  llvm::append_range(groups, signature.getGroups());
  for (const StateGroup *group : groups) {
    auto listed = listParts(executor, signature, *group);
    if (!listed)
      return listed.takeError();
    parts[group->result] = std::move(*listed);
  }

  std::vector<ResultDigest> digests;
  for (unsigned index = 0; index < function.getNumResults(); ++index) {
    auto role = function.getResultAttrOfType<moe::RoleAttr>(index, "moe.role");
    auto buffer = llvm::find_if(signature.buffers, [&](const StateBuffer &other) { return other.result == index; });
    bool isBuffer = buffer != signature.buffers.end();
    std::string name = role       ? moe::stringifyRole(role.getValue()).str()
                       : isBuffer ? buffer->name
                                  : "result " + std::to_string(index);
    if (parts[index].empty()) {
      int64_t elements = cast<RankedTensorType>(function.getResultTypes()[index]).getNumElements();
      parts[index] = {{0, index, 0, elements}};
      std::optional<int> other = findOther(executor, parts[index].front(), 1);
      if (other && (index == signature.loss || index == signature.gradientNorm || isBuffer))
        return makeError("ranks 0 and {0} give a different {1}", *other, name);
      for (int rank = 1; other && rank < executor.step->getRanks(); ++rank)
        parts[index].push_back({rank, index, 0, elements});
    }
    digests.push_back({name, executor.getPartsDigest(parts[index])});
  }
  return digests;
}
