//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// moe-raise-vocab-loss: what a loss of tokens is, and whether an expression is one.
//===----------------------------------------------------------------------===//

#include "TensorExpression.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"
#include "plateau/Interfaces/Matmul.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::plateau::moe {
#define GEN_PASS_DEF_MOERAISEVOCABLOSS
#include "plateau/Dialect/MoE/Transforms/Passes.h.inc"
} // namespace mlir::plateau::moe

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

using Kind = TensorExpressions::Kind;

namespace {
/// What a moe.vocab_loss is made of.
struct Loss {
  Value x, table, labels, bias;
  VocabularyAttr vocabulary;
  Value losses; ///< There already, when not null.
};

/// What the losses are summed with: their sum over `count`, or over the number of labels that count, or over `number`.
struct Mean {
  Value count;
  std::optional<std::pair<Value, int32_t>> counted;
  double number = 1;
};

/// Reads one value as the losses of tokens, or as their mean.
class LossReader {
public:
  LossReader(MLIRContext *context) : context(context) {}

  /// The loss; failure when it is none, with a reason when it has the logarithm of a sum of exponentials.
  FailureOr<Loss> readVector(Value losses);
  FailureOr<std::pair<Loss, Mean>> readMean(Value mean);
  FailureOr<Loss> readStandard(NLLOp op);
  const std::string &getReason() const { return reason; }
  /// The same for all values that have the same exponentials.
  const std::string &getKey() const { return key; }

private:
  FailureOr<Loss> read(Expression expression, Operation *root);
  FailureOr<Loss> readLosses(Expression expression);
  LogicalResult readIgnoreIndex(Expression &expression);
  LogicalResult readLabels(Expression expression, Expression &label);
  LogicalResult readLogits(Expression logits);
  LogicalResult readProduct(Value value);
  LogicalResult readTable(Value table, bool isTransposed);
  LogicalResult readCount(Expression count, Mean &mean);
  LogicalResult checkReaders(Operation *root);
  LogicalResult fail(const Twine &why) {
    reason = why.str();
    return failure();
  }

  MLIRContext *context;
  TensorExpressions expressions;
  Loss loss;
  int32_t ignoreIndex = -100;
  double softcap = 0;
  Operation *product = nullptr;
  std::string reason, key;
};

struct RaiseVocabLoss : moe::impl::MoERaiseVocabLossBase<RaiseVocabLoss> {
  void runOnOperation() override;

private:
  void build(Value replaced, const Loss &loss, const Mean *mean);
};
} // namespace

static RankedTensorType getStatic(Value value, int64_t rank) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getRank() == rank ? type : RankedTensorType();
}

/// 0 where the label is a given number.
LogicalResult LossReader::readIgnoreIndex(Expression &expression) {
  auto select = expressions.getSelect(expression);
  if (!select)
    return success();
  auto [condition, then, otherwise] = *select;
  const TensorExpressions::Node &equal = expressions.get(condition);
  if (expressions.getConstant(then) != 0.0 || equal.name != "equal")
    return failure();
  for (Expression operand : equal.operands)
    if (std::optional<double> number = expressions.getConstant(operand)) {
      if (*number < -2147483648.0 || *number > 2147483647.0)
        return fail("the label that does not count is no number of 32 bits");
      ignoreIndex = static_cast<int32_t>(*number);
      expression = otherwise;
      return success();
    }
  return failure();
}

/// The one coordinate along columns that is read from a tensor.
LogicalResult LossReader::readLabels(Expression expression, Expression &label) {
  llvm::SetVector<Expression> found;
  std::function<void(Expression)> visit = [&](Expression at) {
    const TensorExpressions::Node &node = expressions.get(at);
    for (auto [index, operand] : llvm::enumerate(node.operands)) {
      if (node.kind == Kind::Element && index > 0 && expressions.get(operand).kind == Kind::Element)
        found.insert(operand);
      else if (node.kind == Kind::Element && index == 0 && node.operands.size() == 1 &&
               expressions.get(operand).kind == Kind::Element)
        found.insert(operand);
      else
        visit(operand);
    }
  };
  visit(expression);
  if (found.size() != 1)
    return fail(found.empty() ? "no logit of a label is subtracted" : "logits of several labels are read");
  label = found.front();
  const TensorExpressions::Node &node = expressions.get(label);
  RankedTensorType type = getStatic(node.value, 1);
  bool isByRow = node.operands.size() == 1 && node.operands[0] == expressions.getRow();
  if (!type || !isByRow || !(type.getElementType().isInteger(32) || type.getElementType().isInteger(64)))
    return fail("labels are no tensor of i32 or i64 with one label a row");
  loss.labels = node.value;
  return success();
}

LogicalResult LossReader::readTable(Value table, bool isTransposed) {
  if (isTransposed) {
    loss.table = table;
    return success();
  }
  // Row and column stand for any two coordinates.
  TensorExpressions::Node node =
      expressions.get(expressions.read(table, {expressions.getRow(), expressions.getColumn()}));
  if (node.kind != Kind::Element || node.operands.size() != 2 || node.operands[0] != expressions.getColumn() ||
      node.operands[1] != expressions.getRow()) {
    auto type = cast<RankedTensorType>(table.getType());
    return fail("the table is [" + Twine(type.getDimSize(0)) + ", " + Twine(type.getDimSize(1)) +
                "], a row for each column of x: it must be [" + Twine(type.getDimSize(1)) + ", " +
                Twine(type.getDimSize(0)) + "], or a transpose of that");
  }
  loss.table = node.value;
  return success();
}

LogicalResult LossReader::readProduct(Value value) {
  auto matmul = value.getDefiningOp<linalg::MatmulOp>();
  if (!matmul)
    return fail(
        "logits are " +
        (value.getDefiningOp() ? "made by " + value.getDefiningOp()->getName().getStringRef() : Twine("an argument")) +
        " and not by linalg.matmul");
  product = matmul;
  FailureOr<MatmulForm> form = MatmulForm::get(matmul);
  if (failed(form) || form->transposeA)
    return fail("the product does not have x as its first operand, a row for each token");
  Value x = matmul.getInputs()[0], table = matmul.getInputs()[1];
  RankedTensorType xType = getStatic(x, 2), tableType = getStatic(table, 2), type = getStatic(value, 2);
  if (!xType || !tableType || !type)
    return fail("the product is not of static tensors");
  if (!type.getElementType().isF32() || xType.getElementType() != tableType.getElementType() ||
      !(xType.getElementType().isF32() || xType.getElementType().isBF16()))
    return fail("the product takes " + Twine(xType.getElementTypeBitWidth()) + " and " +
                Twine(tableType.getElementTypeBitWidth()) + " bits to " + Twine(type.getElementTypeBitWidth()) +
                ": it must take f32 or bf16 to f32");
  loss.x = x;
  return readTable(table, form->transposeB);
}

/// The terms of `logits` that differ between columns: a product, and perhaps a bias.
LogicalResult LossReader::readLogits(Expression logits) {
  Terms terms;
  auto keepColumns = [&](Expression of) {
    terms.clear();
    for (auto [operand, factor] : expressions.getTerms(of))
      if (expressions.contains(operand, expressions.getColumn()))
        terms.emplace_back(operand, factor);
  };
  keepColumns(logits);
  double scale = 1;
  if (terms.size() == 1 && expressions.get(terms[0].first).name == "tanh" && terms[0].second > 0) {
    softcap = terms[0].second;
    scale = 1 / softcap;
    TensorExpressions::Node capped = expressions.get(terms[0].first);
    keepColumns(capped.operands[0]);
    if (terms.size() != expressions.getTerms(capped.operands[0]).size())
      return fail("something that is the same for all columns is added inside the cap");
  }
  for (auto [operand, factor] : terms) {
    TensorExpressions::Node node = expressions.get(operand);
    if (std::abs(factor - scale) > 1e-6 * scale)
      return fail("logits are scaled by " + Twine(std::to_string(factor / scale)) + ": " + expressions.print(operand));
    bool isBias = node.kind == Kind::Element && node.operands.size() == 1;
    bool isRow = node.kind == Kind::Element && node.operands.size() == 2 && node.operands[0] == expressions.getRow() &&
                 node.operands[1] == expressions.getColumn();
    if (isBias && !loss.bias && getStatic(node.value, 1)) {
      loss.bias = node.value;
      continue;
    }
    if (!isRow || loss.x)
      return fail("logits have the term " + expressions.print(operand));
    if (failed(readProduct(node.value)))
      return failure();
  }
  if (!loss.x)
    return fail("logits are no product");
  if (loss.bias && !cast<RankedTensorType>(loss.bias.getType()).getElementType().isF32())
    return fail("the bias is not f32");
  return success();
}

/// Logits, and what is made of them, that something else reads as well would be computed all the same.
LogicalResult LossReader::checkReaders(Operation *root) {
  llvm::SetVector<Operation *> inside = expressions.getVisited();
  inside.insert(root);
  inside.insert(product);
  for (Operation *op : inside) {
    auto type = op->getNumResults() ? dyn_cast<RankedTensorType>(op->getResult(0).getType()) : RankedTensorType();
    if (op == root || !type || type.getRank() != 2 || type.getDimSize(1) != getStatic(loss.table, 2).getDimSize(0) ||
        type.getDimSize(0) != getStatic(loss.x, 2).getDimSize(0))
      continue;
    for (Operation *user : op->getUsers())
      if (Operation *reader = op->getBlock()->findAncestorOpInBlock(*user);
          reader && !inside.contains(reader) && !isOpTriviallyDead(reader))
        return fail("logits are read by " + reader->getName().getStringRef() + " too");
  }
  return success();
}

FailureOr<Loss> LossReader::read(Expression expression, Operation *root) {
  if (failed(readIgnoreIndex(expression)))
    return failure();
  // loss = log Σ exp(a) − a[label], where a may have any term that is the same for all columns.
  Expression logarithm = -1, exponent = -1;
  for (auto [operand, factor] : expressions.getTerms(expression)) {
    TensorExpressions::Node log = expressions.get(operand);
    if (log.kind != Kind::Apply || log.name != "log" || factor != 1)
      continue;
    TensorExpressions::Node sum = expressions.get(log.operands[0]);
    if (sum.kind != Kind::Reduce || sum.name != "add" || sum.operands[0] != expressions.getColumn())
      continue;
    TensorExpressions::Node exp = expressions.get(sum.operands[1]);
    if (exp.kind != Kind::Apply || exp.name != "exp")
      continue;
    if (logarithm != -1)
      return fail("there are two logarithms of sums of exponentials");
    logarithm = operand;
    exponent = exp.operands[0];
  }
  if (logarithm == -1)
    return failure();
  key = expressions.print(exponent);
  Expression label = -1;
  Expression others = expressions.addScaled(expression, logarithm, -1);
  if (failed(readLogits(exponent)))
    return failure();
  key += std::to_string(reinterpret_cast<uintptr_t>(product));
  if (failed(readLabels(others, label)))
    return failure();
  Expression rest = expressions.addScaled(others, expressions.substitute(exponent, expressions.getColumn(), label), 1);
  if (expressions.getConstant(rest) != 0.0)
    return fail("the loss has, beside the logarithm and the label's logit, " + expressions.print(rest));
  if (failed(checkReaders(root)))
    return failure();
  loss.vocabulary = VocabularyAttr::get(context, getStatic(loss.table, 2).getDimSize(0), ignoreIndex, 0, 0,
                                        static_cast<float>(softcap));
  return loss;
}

FailureOr<Loss> LossReader::readVector(Value losses) {
  return read(expressions.read(losses, {expressions.getRow()}), losses.getDefiningOp());
}

/// moe.nll of moe.log_softmax is the loss whatever its options.
FailureOr<Loss> LossReader::readStandard(NLLOp op) {
  auto softmax = op.getLogProbs().getDefiningOp<LogSoftmaxOp>();
  key = std::to_string(reinterpret_cast<uintptr_t>(op.getLogProbs().getAsOpaquePointer()));
  if (!softmax || softmax.getLse() != op.getLse() || softmax.getVocabulary() != op.getVocabulary())
    return fail("log probabilities and lse are not those of one moe.log_softmax with this vocabulary");
  Expression logits = expressions.read(softmax.getInput(), {expressions.getRow(), expressions.getColumn()});
  if (failed(readLogits(logits)))
    return failure();
  if (softcap > 0 || (loss.bias && softmax.getBias()))
    return fail("logits are capped, or have a bias, before moe.log_softmax does it");
  if (!loss.bias)
    loss.bias = softmax.getBias();
  loss.labels = op.getLabels();
  loss.vocabulary = op.getVocabulary();
  for (Value value : {Value(softmax.getResult()), Value(softmax.getLse()), Value(product->getResult(0))})
    for (Operation *user : value.getUsers())
      if (user != op && user != softmax && !expressions.getVisited().contains(user))
        return fail("logits or log probabilities are read by " + user->getName().getStringRef() + " too");
  return loss;
}

LogicalResult LossReader::readCount(Expression count, Mean &mean) {
  TensorExpressions::Node node = expressions.get(count);
  if (std::optional<double> number = expressions.getConstant(count)) {
    mean.number = *number;
    return success();
  }
  if (node.kind == Kind::Element && node.operands.empty() && getStatic(node.value, 0) &&
      getStatic(node.value, 0).getElementType().isF32()) {
    mean.count = node.value;
    return success();
  }
  // Σ over rows of 0 where the label is a number, 1 elsewhere.
  if (node.kind == Kind::Reduce && node.name == "add" && node.operands[0] == expressions.getRow())
    if (auto select = expressions.getSelect(node.operands[1]))
      if (expressions.getConstant((*select)[1]) == 0.0 && expressions.getConstant((*select)[2]) == 1.0)
        for (Expression operand : expressions.get((*select)[0]).operands)
          if (std::optional<double> ignored = expressions.getConstant(operand); ignored == ignoreIndex) {
            mean.counted = {loss.labels, ignoreIndex};
            Expression labels = expressions.read(loss.labels, {expressions.getRow()});
            return success(llvm::is_contained(expressions.get((*select)[0]).operands, labels));
          }
  return failure();
}

/// Those of a moe.vocab_loss.
FailureOr<Loss> LossReader::readLosses(Expression expression) {
  const TensorExpressions::Node &node = expressions.get(expression);
  auto op = node.kind == Kind::Element ? node.value.getDefiningOp<VocabLossOp>() : VocabLossOp();
  if (!op || node.value != op.getLosses())
    return failure();
  loss.losses = op.getLosses();
  loss.labels = op.getLabels();
  ignoreIndex = op.getVocabulary().getIgnoreIndex();
  key = std::to_string(reinterpret_cast<uintptr_t>(op.getOperation()));
  return loss;
}

/// The sum of losses, divided by something or not, before the sum or behind it.
FailureOr<std::pair<Loss, Mean>> LossReader::readMean(Value value) {
  Terms terms = expressions.getTerms(expressions.read(value, {}));
  if (terms.size() != 1)
    return failure();
  auto [expression, factor] = terms[0];
  std::optional<Expression> count;
  auto divide = [&](Expression &of) {
    TensorExpressions::Node node = expressions.get(of);
    if (node.kind == Kind::Apply && node.name == "quotient") {
      count = node.operands[1];
      of = node.operands[0];
    }
  };
  divide(expression);
  TensorExpressions::Node sum = expressions.get(expression);
  if (sum.kind != Kind::Reduce || sum.name != "add" || sum.operands[0] != expressions.getRow())
    return failure();
  Expression body = sum.operands[1];
  if (!count)
    divide(body);
  // A number by which each loss is divided is a factor of all its terms.
  for (auto [operand, own] : expressions.getTerms(body))
    if (expressions.get(operand).name == "log" && own > 0) {
      body = expressions.divide(body, own);
      factor *= own;
      break;
    }
  FailureOr<Loss> found = readLosses(body);
  if (failed(found))
    found = read(body, value.getDefiningOp());
  if (failed(found))
    return failure();
  Mean mean;
  if (factor <= 0)
    return failure();
  if (count && (factor != 1 || expressions.contains(*count, expressions.getRow()) || failed(readCount(*count, mean))))
    return failure();
  if (!count)
    mean.number = 1 / factor;
  return std::pair(*found, mean);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Erases what computed values that nobody reads.
static void eraseDead(Operation *root) {
  llvm::SetVector<Operation *> candidates;
  candidates.insert(root);
  while (!candidates.empty()) {
    Operation *op = candidates.pop_back_val();
    if (!isOpTriviallyDead(op))
      continue;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *source = operand.getDefiningOp(); source && !op->isAncestor(source))
          candidates.insert(source);
    });
    op->erase();
  }
}

void RaiseVocabLoss::build(Value replaced, const Loss &loss, const Mean *mean) {
  Operation *root = replaced.getDefiningOp();
  OpBuilder builder(root);
  Location loc = root->getLoc();
  Value labels = loss.labels;
  auto type = cast<RankedTensorType>(labels.getType());
  if (type.getElementType().isInteger(64))
    labels = arith::TruncIOp::create(builder, loc, type.clone(builder.getI32Type()), labels);
  auto rows = RankedTensorType::get(type.getShape(), builder.getF32Type());
  Value result = loss.losses;
  if (!result)
    result = VocabLossOp::create(builder, loc, rows, rows, loss.x, loss.table, labels, loss.bias, FlatSymbolRefAttr(),
                                 loss.vocabulary)
                 .getLosses();
  if (mean) {
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    Value count = mean->count;
    if (mean->counted)
      count = CountLabelsOp::create(builder, loc, scalar, labels, builder.getI32IntegerAttr(mean->counted->second));
    else if (!count)
      count = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(scalar, static_cast<float>(mean->number)));
    result = MeanLossOp::create(builder, loc, scalar, result, /*weights=*/Value(), count);
  }
  replaced.replaceAllUsesWith(result);
  eraseDead(root);
}

void RaiseVocabLoss::runOnOperation() {
  struct Missed {
    Location loc;
    std::string reason, key;
  };
  SmallVector<Missed> missed;
  llvm::StringSet<> raised;
  // From the end: what is made of all of a loss comes before what is made of a part of it.
  SmallVector<Operation *> ops;
  auto collect = [&] {
    ops.clear();
    getOperation().walk([&](Operation *op) {
      if (!isa<linalg::LinalgOp>(op->getParentOp()) && op->getNumResults() > 0)
        ops.push_back(op);
    });
  };
  collect();
  while (!ops.empty()) {
    Operation *op = ops.pop_back_val();
    if (op->use_empty())
      continue;
    for (Value result : op->getResults()) {
      auto type = dyn_cast<RankedTensorType>(result.getType());
      if (!type || type.getRank() > 1 || !type.getElementType().isF32() || !type.hasStaticShape() ||
          isa<VocabLossOp>(op))
        continue;
      LossReader reader(&getContext());
      FailureOr<Loss> loss = failure();
      std::optional<Mean> mean;
      if (auto nll = dyn_cast<NLLOp>(op)) {
        loss = reader.readStandard(nll);
      } else if (type.getRank() == 1) {
        loss = reader.readVector(result);
      } else if (FailureOr<std::pair<Loss, Mean>> both = reader.readMean(result); succeeded(both)) {
        loss = both->first;
        mean = both->second;
      }
      if (failed(loss)) {
        if (!reader.getReason().empty())
          missed.push_back({op->getLoc(), reader.getReason(), reader.getKey()});
        continue;
      }
      raised.insert(reader.getKey());
      remark::passed(op->getLoc(), remark::RemarkOpts::name("raised").category("moe-raise-vocab-loss"))
          << remark::metric("Result", type.getRank() == 1 ? "losses" : "mean");
      build(result, *loss, mean ? &*mean : nullptr);
      collect(); // What was read is gone.
      break;
    }
  }
  llvm::StringSet<> told;
  for (const Missed &each : missed)
    if (!raised.contains(each.key) && told.insert(each.key).second)
      remark::missed(each.loc, remark::RemarkOpts::name("not-raised").category("moe-raise-vocab-loss"))
          << remark::reason("{0}", each.reason);
}
