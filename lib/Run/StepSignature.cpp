//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/StepSignature.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;
using moe::Role;

static constexpr StringRef roleName = "moe.role";
static constexpr StringRef donatedName = "moe.donated";
static constexpr StringRef layoutName = "moe.layout";
static constexpr StringRef bufferName = "moe.buffer";
static constexpr StringRef batchName = "moe.batch";
static constexpr StringRef embeddingName = "model.embed_tokens.weight";

SmallVector<const StateGroup *> StepSignature::getGroups() const {
  SmallVector<const StateGroup *> groups = {&parameters, &gradients, &first, &second};
  if (master)
    groups.push_back(&*master);
  return groups;
}

int64_t StepSignature::getParts(moe::MemberAttr member) const {
  auto it = parts.find(member.getParameter().getName());
  return it == parts.end() ? 1 : it->second;
}

SmallVector<int64_t> StepSignature::getWholeShape(moe::MemberAttr member) const {
  SmallVector<int64_t> shape(member.getShape());
  if (!shape.empty())
    shape[0] = member.getParameter().getWholeRows(getParts(member), shape[0]);
  return shape;
}

MemberPart StepSignature::getPart(moe::MemberAttr member, int64_t rank) const {
  int64_t whole = ShapedType::getNumElements(getWholeShape(member)), size = member.getElements();
  int64_t first = std::min(rank % getParts(member) * size, whole);
  return {first, std::min(size, whole - first)};
}

FailureOr<func::FuncOp> run::findStep(ModuleOp module) {
  func::FuncOp step;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isDeclaration())
      continue;
    bool hasRole = llvm::any_of(llvm::seq(function.getNumArguments()),
                                [&](unsigned i) { return function.getArgAttr(i, roleName) != nullptr; });
    if (!hasRole)
      continue;
    if (step) {
      InFlightDiagnostic diag = emitError(function.getLoc())
                                << "both @" << step.getName() << " and @" << function.getName()
                                << " are public and have arguments with roles; a module to train has one";
      diag.attachNote(step.getLoc()) << "the other one";
      return diag;
    }
    step = function;
  }
  if (!step)
    return module.emitError(
        "there is no public function whose arguments have a moe.role, so nothing to train; a step comes "
        "from moe-attach-optimizer; any other function runs with --entry NAME");
  return step;
}

std::optional<unsigned> run::getDonatedResult(func::FuncOp function, unsigned index) {
  if (auto attr = function.getArgAttrOfType<IntegerAttr>(index, donatedName))
    return attr.getInt();
  return std::nullopt;
}

std::optional<unsigned> run::getDonatingArgument(func::FuncOp function, unsigned index) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (getDonatedResult(function, i) == index)
      return i;
  return std::nullopt;
}

namespace {
/// Collects the roles of one function and checks what they stand on. What the dialect verifies of its attributes
/// (batches, layouts, donations) is not checked again.
class SignatureReader {
public:
  explicit SignatureReader(func::FuncOp function) : function(function) {}

  FailureOr<StepSignature> read();

private:
  LogicalResult collect();
  FailureOr<unsigned> find(const llvm::DenseMap<Role, unsigned> &places, Role role, StringRef what);
  LogicalResult findTyped(unsigned &place, Role role, bool isResult, RankedTensorType type);
  LogicalResult readBatch(BatchShape &batch);
  LogicalResult readGroup(StateGroup &group, Role role);
  LogicalResult checkGroups(StepSignature &signature);
  LogicalResult readBuffers(StepSignature &signature);
  LogicalResult findParts(StepSignature &signature);
  FailureOr<int64_t> findVocabulary(const StepSignature &signature);

  func::FuncOp function;
  llvm::DenseMap<Role, unsigned> arguments, results;
};
} // namespace

LogicalResult SignatureReader::collect() {
  auto place = [&](llvm::DenseMap<Role, unsigned> &places, Attribute attr, unsigned index,
                   StringRef what) -> LogicalResult {
    auto role = dyn_cast_or_null<moe::RoleAttr>(attr);
    if (!role)
      return success();
    auto [it, isNew] = places.try_emplace(role.getValue(), index);
    if (isNew)
      return success();
    return emitError(function.getLoc()) << "@" << function.getName() << ": " << what << "s " << it->second << " and "
                                        << index << " both have the role " << moe::stringifyRole(role.getValue());
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (failed(place(arguments, function.getArgAttr(i, roleName), i, "argument")))
      return failure();
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (failed(place(results, function.getResultAttr(i, roleName), i, "result")))
      return failure();
  return success();
}

FailureOr<unsigned> SignatureReader::find(const llvm::DenseMap<Role, unsigned> &places, Role role, StringRef what) {
  auto it = places.find(role);
  if (it != places.end())
    return it->second;
  InFlightDiagnostic diag = emitError(function.getLoc()) << "@" << function.getName() << " has no " << what
                                                         << " with the role " << moe::stringifyRole(role);
  if (role == Role::LearningRate)
    diag.attachNote() << "a function that only has a loss becomes a step by moe-differentiate and moe-attach-optimizer";
  return diag;
}

LogicalResult SignatureReader::findTyped(unsigned &place, Role role, bool isResult, RankedTensorType type) {
  StringRef what = isResult ? "result" : "argument";
  FailureOr<unsigned> index = find(isResult ? results : arguments, role, what);
  if (failed(index))
    return failure();
  place = *index;
  Type found = isResult ? function.getResultTypes()[place] : function.getArgumentTypes()[place];
  if (found == type)
    return success();
  return emitError(function.getLoc()) << "@" << function.getName() << ": " << what << " " << place << " with the role "
                                      << moe::stringifyRole(role) << " is " << found << "; it must be " << type;
}

LogicalResult SignatureReader::readBatch(BatchShape &batch) {
  auto attr = function->getAttrOfType<moe::BatchAttr>(batchName);
  if (!attr)
    return emitError(function.getLoc()) << "@" << function.getName()
                                        << " does not say its batch: moe.batch = #moe.batch<ranks, tokens, sequence>";
  batch = {attr.getRanks(), attr.getTokens(), attr.getSequence(), attr.getMicroBatches()};
  return success();
}

LogicalResult SignatureReader::readGroup(StateGroup &group, Role role) {
  FailureOr<unsigned> argument = find(arguments, role, "argument"), result = find(results, role, "result");
  if (failed(argument) || failed(result))
    return failure();
  group.role = role;
  group.argument = *argument;
  group.result = *result;
  auto fail = [&]() {
    return emitError(function.getLoc()) << "@" << function.getName() << ": argument " << group.argument
                                        << " with the role " << moe::stringifyRole(role) << " ";
  };
  auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[group.argument]);
  if (!type || type.getRank() != 1 || !type.hasStaticShape() ||
      !(type.getElementType().isF32() || type.getElementType().isBF16()))
    return fail() << "is " << function.getArgumentTypes()[group.argument] << "; it must be a vector of f32 or bf16";
  if (function.getResultTypes()[group.result] != type)
    return fail() << "is " << type << " but result " << group.result << " of that role is "
                  << function.getResultTypes()[group.result];
  group.layout = function.getArgAttrOfType<moe::LayoutAttr>(group.argument, layoutName);
  if (!group.layout)
    return fail() << "has no moe.layout";
  group.elementType = type.getElementType();
  group.elements = type.getNumElements();
  if (std::optional<unsigned> donated = getDonatedResult(function, group.argument); donated && *donated != group.result)
    return fail() << "is donated to result " << *donated << "; result " << group.result << " has its role";
  return success();
}

LogicalResult SignatureReader::checkGroups(StepSignature &signature) {
  const StateGroup &parameters = signature.parameters;
  bool wantsMaster = parameters.elementType.isBF16();
  bool hasMaster = arguments.contains(Role::Master) || results.contains(Role::Master);
  if (wantsMaster || hasMaster) {
    if (!wantsMaster)
      return emitError(function.getLoc()) << "@" << function.getName() << " has a master copy, but its parameters are "
                                          << parameters.elementType << " and need none";
    signature.master.emplace();
    if (failed(readGroup(*signature.master, Role::Master)))
      return failure();
  }
  for (const StateGroup *group : signature.getGroups()) {
    if (group->layout != parameters.layout || group->elements != parameters.elements)
      return emitError(function.getLoc())
             << "@" << function.getName() << ": the group of the role " << moe::stringifyRole(group->role)
             << " has another layout than the parameters";
    if (group->role != Role::Parameters && group->role != Role::Gradients && !group->elementType.isF32())
      return emitError(function.getLoc())
             << "@" << function.getName() << ": the group of the role " << moe::stringifyRole(group->role) << " is "
             << group->elementType << "; it must be f32";
  }
  return success();
}

/// State with a rule of its own has no role: its new value is the result to which it is donated.
LogicalResult SignatureReader::readBuffers(StepSignature &signature) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto name = function.getArgAttrOfType<StringAttr>(i, bufferName);
    if (!name)
      continue;
    std::optional<unsigned> result = getDonatedResult(function, i);
    if (!result)
      return emitError(function.getLoc()) << "@" << function.getName() << ": argument " << i << " is the state '"
                                          << name.getValue() << "' and is donated to no result";
    ArrayRef<int64_t> shape = cast<RankedTensorType>(function.getArgumentTypes()[i]).getShape();
    signature.buffers.push_back({name.str(), i, *result, SmallVector<int64_t>(shape)});
  }
  return success();
}

LogicalResult SignatureReader::findParts(StepSignature &signature) {
  // What is on @world is summed over all ranks.
  FailureOr<Grid> world = Grid::lookup(function, FlatSymbolRefAttr::get(function.getContext(), "world"));
  if (succeeded(world) && (world->shape.size() != 1 || world->getRanks() != signature.batch.ranks))
    return emitError(function.getLoc()) << "@" << function.getName() << " is for " << signature.batch.ranks
                                        << " ranks: shard.grid @world must have the shape " << signature.batch.ranks;
  for (moe::MemberAttr member : signature.parameters.layout.getMembers()) {
    FlatSymbolRefAttr shard = member.getParameter().getShard();
    if (!shard)
      continue;
    FailureOr<Grid> grid = Grid::lookup(function, shard);
    if (failed(grid) || grid->getRanks() != signature.batch.ranks)
      return emitError(function.getLoc())
             << "@" << function.getName() << ": parameter '" << member.getParameter().getName()
             << "' is divided by grid " << shard << ", and there is none of " << signature.batch.ranks << " ranks";
    if (member.getShape().empty())
      return emitError(function.getLoc())
             << "@" << function.getName() << ": parameter '" << member.getParameter().getName()
             << "' is divided by grid " << shard << ", and it has no dimension";
    auto fail = [&] { return emitError(function.getLoc()) << "@" << function.getName() << ": "; };
    if (failed(member.getParameter().verifyParts(fail, grid->getShards(), member.getShape()[0])))
      return failure();
    signature.parts[member.getParameter().getName()] = grid->getShards();
  }
  return success();
}

/// Rows of the whole table of token embeddings: of the parameter of that name, or of the first moe.embedding.
FailureOr<int64_t> SignatureReader::findVocabulary(const StepSignature &signature) {
  for (moe::MemberAttr member : signature.parameters.layout.getMembers())
    if (member.getParameter().getName() == embeddingName && member.getShape().size() == 2)
      return signature.getWholeShape(member)[0];
  int64_t rows = 0;
  function.walk([&](moe::EmbeddingOp op) {
    rows = op.getSize().value_or(op.getTable().getType().getDimSize(0));
    return WalkResult::interrupt();
  });
  if (rows > 0)
    return rows;
  return emitError(function.getLoc()) << "@" << function.getName() << " has no parameter " << embeddingName
                                      << " and no moe.embedding, so the size of its vocabulary is unknown";
}

FailureOr<StepSignature> SignatureReader::read() {
  StepSignature signature;
  signature.function = function;
  if (failed(collect()) || failed(readBatch(signature.batch)))
    return failure();
  MLIRContext *context = function.getContext();
  Type i32 = IntegerType::get(context, 32), f32 = Float32Type::get(context);
  auto ids = RankedTensorType::get({signature.batch.tokens}, i32);
  auto counter = RankedTensorType::get({}, i32), scalar = RankedTensorType::get({}, f32);
  if (failed(findTyped(signature.tokens, Role::Tokens, false, ids)) ||
      failed(findTyped(signature.labels, Role::Labels, false, ids)) ||
      failed(findTyped(signature.positions, Role::Positions, false, ids)) ||
      failed(findTyped(signature.starts, Role::Starts, false, ids)) ||
      failed(findTyped(signature.learningRate, Role::LearningRate, false, scalar)) ||
      failed(findTyped(signature.step, Role::Step, false, counter)) ||
      failed(findTyped(signature.loss, Role::Loss, true, scalar)) ||
      failed(findTyped(signature.gradientNorm, Role::GradientNorm, true, scalar)) ||
      failed(readGroup(signature.parameters, Role::Parameters)) ||
      failed(readGroup(signature.gradients, Role::Gradients)) ||
      failed(readGroup(signature.first, Role::FirstMoment)) ||
      failed(readGroup(signature.second, Role::SecondMoment)) || failed(checkGroups(signature)) ||
      failed(readBuffers(signature)) || failed(findParts(signature)))
    return failure();
  if (arguments.contains(Role::TokenCount) &&
      failed(findTyped(signature.tokenCount.emplace(), Role::TokenCount, false, counter)))
    return failure();
  FailureOr<int64_t> vocabulary = findVocabulary(signature);
  if (failed(vocabulary))
    return failure();
  signature.vocabulary = *vocabulary;
  function.walk([&](moe::CountLabelsOp op) {
    signature.ignoreIndex = op.getIgnoreIndex();
    return WalkResult::interrupt();
  });
  return signature;
}

FailureOr<StepSignature> run::getStepSignature(func::FuncOp function) { return SignatureReader(function).read(); }
