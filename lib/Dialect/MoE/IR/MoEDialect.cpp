//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace mlir::plateau::moe;

#include "plateau/Dialect/MoE/IR/MoEDialect.cpp.inc"
#include "plateau/Dialect/MoE/IR/MoEEnums.cpp.inc"

/// A list of sizes, which may be empty: a scalar has none.
static ParseResult parseShape(AsmParser &parser, SmallVector<int64_t> &shape) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parser.parseInteger(shape.emplace_back()); });
}
static void printShape(AsmPrinter &printer, ArrayRef<int64_t> shape) {
  printer << "[";
  llvm::interleaveComma(shape, printer.getStream());
  printer << "]";
}

/// What a plan has beside its sizes, each in its place or left out: `, helper_slots = 1, chunks = 9, leaves = 4,
/// capacity = 251`.
static ParseResult parseIterations(AsmParser &parser, int64_t &helperSlots, int64_t &chunks, int64_t &leaves,
                                   int64_t &capacity) {
  helperSlots = capacity = 0;
  chunks = leaves = 1;
  std::pair<StringRef, int64_t *> parts[] = {
      {"helper_slots", &helperSlots}, {"chunks", &chunks}, {"leaves", &leaves}, {"capacity", &capacity}};
  auto next = std::begin(parts);
  while (succeeded(parser.parseOptionalComma())) {
    StringRef word;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&word))
      return failure();
    next = std::find_if(next, std::end(parts), [&](auto part) { return part.first == word; });
    if (next == std::end(parts))
      return parser.emitError(loc) << "'" << word
                                   << "' is none of helper_slots, chunks, leaves and capacity, or not in this order";
    if (parser.parseEqual() || parser.parseInteger(*next->second))
      return failure();
    ++next;
  }
  return success();
}
static void printIterations(AsmPrinter &printer, int64_t helperSlots, int64_t chunks, int64_t leaves,
                            int64_t capacity) {
  auto print = [&](StringRef word, int64_t value, int64_t usual) {
    if (value != usual)
      printer << ", " << word << " = " << value;
  };
  print("helper_slots", helperSlots, 0);
  print("chunks", chunks, 1);
  print("leaves", leaves, 1);
  print("capacity", capacity, 0);
}

#define GET_ATTRDEF_CLASSES
#include "plateau/Dialect/MoE/IR/MoEAttrs.cpp.inc"

namespace {
/// Layouts are long and shared, scopes many: both print as aliases.
struct Aliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    if (isa<LayoutAttr>(attribute)) {
      os << "layout";
      return AliasResult::FinalAlias;
    }
    return AliasResult::NoAlias;
  }
};
} // namespace

#define GET_TYPEDEF_CLASSES
#include "plateau/Dialect/MoE/IR/MoETypes.cpp.inc"

void MoEDialect::initialize() {
  addInterfaces<Aliases>();
  addTypes<
#define GET_TYPEDEF_LIST
#include "plateau/Dialect/MoE/IR/MoETypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "plateau/Dialect/MoE/IR/MoEAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "plateau/Dialect/MoE/IR/MoEOps.cpp.inc"
      >();
}

std::optional<int64_t> mlir::plateau::moe::countElements(ArrayRef<int64_t> shape) {
  std::optional<int64_t> elements = 1;
  for (int64_t size : shape)
    elements = elements ? llvm::checkedMul(*elements, size) : std::nullopt;
  return elements && *elements <= maxElements ? elements : std::nullopt;
}

int64_t MemberAttr::getElements() const { return ShapedType::getNumElements(getShape()); }

int64_t LayoutAttr::getExtent() const {
  int64_t extent = 0;
  for (MemberAttr member : getMembers())
    extent = std::max(extent, member.getOffset() + member.getElements());
  return extent;
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<MemberAttr> members) {
  int64_t end = 0;
  llvm::StringSet<> names;
  for (MemberAttr member : members) {
    StringRef name = member.getParameter().getName();
    if (!names.insert(name).second)
      return emitError() << "two tensors have the name '" << name << "'";
    if (llvm::any_of(member.getShape(), [](int64_t size) { return size < 0; }))
      return emitError() << "tensor '" << name << "' has a negative dimension";
    if (member.getOffset() < end)
      return emitError() << "tensor '" << name << "' starts at " << member.getOffset() << ", before the end " << end
                         << " of the one before it: offsets ascend in declaration order without overlap";
    std::optional<int64_t> next = countElements(member.getShape());
    next = next ? llvm::checkedAdd(*next, member.getOffset()) : std::nullopt;
    if (!next || *next > maxElements)
      return emitError() << "tensor '" << name << "' ends beyond 2^60 elements";
    end = *next;
  }
  return success();
}

LogicalResult ParameterAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name, bool decay,
                                    FloatAttr mean, FloatAttr deviation, FlatSymbolRefAttr shard,
                                    std::optional<int64_t> rows) {
  if (name.empty())
    return emitError() << "a parameter needs a name";
  if (!mean.getValue().isFinite() || !deviation.getValue().isFinite() || deviation.getValueAsDouble() < 0)
    return emitError() << "parameter '" << name << "': mean and deviation must be finite, and deviation not negative";
  if (rows && (!shard || *rows < 1))
    return emitError() << "parameter '" << name << "': rows is " << *rows
                       << ": it must be positive, and is for a tensor that a grid divides (shard)";
  return success();
}

LogicalResult ParameterAttr::verifyParts(function_ref<InFlightDiagnostic()> emitError, int64_t parts,
                                         int64_t partRows) const {
  if (!getRows() || llvm::divideCeil(*getRows(), parts) <= static_cast<uint64_t>(partRows))
    return success();
  return emitError() << "parameter '" << getName() << "' has " << *getRows() << " rows, and " << parts << " parts of "
                     << partRows << " do not hold them";
}

LogicalResult VocabularyAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t size, int32_t,
                                     APFloat labelSmoothing, APFloat zLoss, APFloat softcap) {
  if (size < 1 || size > std::numeric_limits<int32_t>::max())
    return emitError() << "a vocabulary of size " << size << ": it must be from 1 to 2^31 - 1";
  auto isGood = [](const APFloat &value) { return value.isFinite() && !value.isNegative(); };
  if (!isGood(labelSmoothing) || !isGood(zLoss) || !isGood(softcap) || labelSmoothing.convertToFloat() >= 1)
    return emitError() << "label_smoothing must be in [0, 1), z_loss and softcap finite and not negative";
  return success();
}

/// `<size = 8, ignore_index = -1, softcap = 30.0>`: what has its default is left out.
Attribute VocabularyAttr::parse(AsmParser &parser, Type) {
  int64_t size = 0, ignoreIndex = -100;
  double smoothing = 0, zLoss = 0, softcap = 0;
  llvm::StringSet<> seen;
  auto parseField = [&]() -> ParseResult {
    StringRef name;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return failure();
    if (!seen.insert(name).second)
      return parser.emitError(loc) << "'" << name << "' stands twice";
    if (name == "size")
      return parser.parseInteger(size);
    if (name == "ignore_index")
      return parser.parseInteger(ignoreIndex);
    double *value = llvm::StringSwitch<double *>(name)
                        .Case("label_smoothing", &smoothing)
                        .Case("z_loss", &zLoss)
                        .Case("softcap", &softcap)
                        .Default(nullptr);
    return value ? parser.parseFloat(*value)
                 : parser.emitError(loc) << "expected size, ignore_index, label_smoothing, z_loss or softcap";
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseField))
    return {};
  if (ignoreIndex != static_cast<int32_t>(ignoreIndex)) {
    parser.emitError(loc) << "ignore_index must have 32 bits";
    return {};
  }
  auto narrow = [](double value) { return APFloat(static_cast<float>(value)); };
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), size, static_cast<int32_t>(ignoreIndex),
                    narrow(smoothing), narrow(zLoss), narrow(softcap));
}

void VocabularyAttr::print(AsmPrinter &printer) const {
  printer << "<size = " << getSize();
  if (getIgnoreIndex() != -100)
    printer << ", ignore_index = " << getIgnoreIndex();
  auto print = [&](StringRef name, const APFloat &value) {
    if (!value.isZero()) {
      printer << ", " << name << " = ";
      printer.printFloat(value);
    }
  };
  print("label_smoothing", getLabelSmoothing());
  print("z_loss", getZLoss());
  print("softcap", getSoftcap());
  printer << ">";
}

LogicalResult BatchAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t ranks, int64_t tokens,
                                int64_t sequence, int64_t microBatches) {
  if (ranks < 1 || tokens < 1 || sequence < 1)
    return emitError() << "ranks (" << ranks << "), tokens (" << tokens << ") and sequence (" << sequence
                       << ") must be at least 1";
  // One token more than a batch is read, and offsets in the file are in bytes.
  std::optional<int64_t> all = llvm::checkedMul(ranks, tokens);
  if (ranks > std::numeric_limits<int32_t>::max() || !all || *all > maxElements)
    return emitError() << "ranks (" << ranks << ") must fit 32 bits, and there must be no more than 2^60 tokens in all";
  if (microBatches < 1 || microBatches > tokens || tokens % microBatches || tokens / microBatches % sequence)
    if (microBatches != 1)
      return emitError() << "tokens (" << tokens << ") must divide into micro_batches (" << microBatches
                         << ") of whole sequences (" << sequence << ")";
  if (tokens % sequence)
    return emitError() << "tokens (" << tokens << ") must be a multiple of sequence (" << sequence << ")";
  return success();
}

/// Whether an argument of this role has one row for each token of the batch.
static bool isForEachToken(Role role) {
  return role == Role::Tokens || role == Role::Labels || role == Role::Positions || role == Role::Starts;
}

LogicalResult MoEDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != "moe.batch")
    return success();
  auto function = dyn_cast<FunctionOpInterface>(op);
  auto batch = dyn_cast<BatchAttr>(attribute.getValue());
  if (!function || !batch)
    return op->emitOpError() << "'moe.batch' must be a #moe.batch on a function";
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto role = function.getArgAttrOfType<RoleAttr>(index, "moe.role");
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (role && isForEachToken(role.getValue()) &&
        (!tensor || tensor.getRank() != 1 || tensor.getDimSize(0) != batch.getTokens()))
      return op->emitOpError() << "argument #" << index << ": " << stringifyRole(role.getValue()) << " must have "
                               << batch.getTokens() << " rows, the tokens of 'moe.batch'";
  }
  return success();
}

/// The attributes of the dialect that an argument of a function may carry, and what each requires of it.
LogicalResult MoEDialect::verifyRegionArgAttribute(Operation *op, unsigned region, unsigned argument,
                                                   NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitOpError() << "'" << attribute.getName().strref() << "' belongs on an argument of a function";
  Type type = function.getArgumentTypes()[argument];
  StringRef name = attribute.getName();
  auto fail = [&](const Twine &what) {
    return op->emitOpError() << "argument #" << argument << ": '" << name << "' " << what;
  };
  if (name == "moe.role")
    return isa<RoleAttr>(attribute.getValue()) ? success() : fail("must be a #moe.role");
  if (name == "moe.parameter") {
    if (!isa<ParameterAttr>(attribute.getValue()))
      return fail("must be a #moe.parameter");
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() || !isa<Float32Type, BFloat16Type>(tensor.getElementType()))
      return fail("needs a static tensor of f32 or bf16");
    return success();
  }
  if (name == "moe.buffer") {
    auto buffer = dyn_cast<StringAttr>(attribute.getValue());
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!buffer || buffer.empty())
      return fail("must be the name of the state");
    if (!tensor || !tensor.hasStaticShape() || !tensor.getElementType().isF32())
      return fail("needs a static tensor of f32");
    return success();
  }
  if (name == "moe.layout") {
    auto layout = dyn_cast<LayoutAttr>(attribute.getValue());
    if (!layout)
      return fail("must be a #moe.layout");
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || tensor.getRank() != 1 || !tensor.hasStaticShape() || tensor.getNumElements() < layout.getExtent())
      return fail("needs a static flat tensor of at least " + Twine(layout.getExtent()) + " elements");
    return success();
  }
  if (name == "moe.donated") {
    auto index = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!index || index.getInt() < 0 || index.getInt() >= (int64_t)function.getNumResults())
      return fail("must be the number of a result");
    if (function.getResultTypes()[index.getInt()] != type)
      return fail("names a result of another type");
    return success();
  }
  return fail("is not an attribute of this dialect");
}

LogicalResult MoEDialect::verifyRegionResultAttribute(Operation *op, unsigned region, unsigned result,
                                                      NamedAttribute attribute) {
  if (attribute.getName() == "moe.role" && isa<RoleAttr>(attribute.getValue()))
    return success();
  return op->emitOpError() << "result #" << result << ": '" << attribute.getName().strref()
                           << "' is not an attribute of a result: only moe.role is";
}
